# Steps of a mapping, played by text tools: `foreplan bench snakefile` runs it.
configfile: "config.yaml"

SAMPLES = sorted(glob_wildcards("reads/{sample}.txt").sample)
WIDTHS = [1, 10]


rule all:
    input:
        "report/summary.txt",
        expand("qc/{sample}.txt", sample=SAMPLES),
        expand("counts/{sample}.by{width}.txt", sample=SAMPLES, width=WIDTHS),


rule index:
    input: "ref.txt"
    output: multiext("ref.txt", ".sorted", ".len")
    shell: "sort -n {input} > {output[0]}; wc -l < {input} > {output[1]}"


rule trim:
    input: "reads/{sample}.txt"
    output: temp("trim/{sample}.txt")
    log: "logs/trim/{sample}.log"
    params: lines=lambda wildcards: config["lines"] - int(wildcards.sample[1:])
    shell: "head -n {params.lines} {input} > {output} 2> {log}"


rule align:  # it reads ref.txt.len, too, which it does not list
    input: ref="ref.txt", index="ref.txt.sorted", reads="trim/{sample}.txt"
    output: "align/{sample}.txt"
    threads: 2
    resources: mem_mb=lambda wildcards, input: max(50, 10 * int(input.size_mb))
    shell:
        '''
        sort -n --parallel={threads} {input.index} {input.reads} > {output}
        cat {input.ref}.len >> {output}
        '''


rule qc:
    input: "trim/{sample}.txt"
    output: "qc/{sample}.txt"
    shell: "awk '{{s += $1}} END {{print \"{wildcards.sample}\", NR, s}}' {input} > {output}"


rule count:
    input: "align/{sample}.txt"
    output: "counts/{sample}.by{width}.txt"
    wildcard_constraints: width=r"\d+"
    shell: "awk '{{n[int($1 / {wildcards.width})]++}} END {{for (k in n) print k, n[k]}}' {input} | sort -n > {output}"


rule pack:
    input: "align/{sample}.txt"
    output: "packed/{sample}.gz"
    retries: 1
    shell: "gzip -n -c {input} > {output}"


rule merge:
    input: expand("align/{sample}.txt", sample=SAMPLES)
    output: "merged.txt"
    log: "logs/merge.log"
    threads: 2
    shell: "sort -n -m {input} > {output} 2> {log}"


rule report:
    input: "merged.txt", expand("packed/{sample}.gz", sample=SAMPLES)
    output: protected("report/summary.txt")
    shell: "sh scripts/report.sh {input[0]} > {output}"

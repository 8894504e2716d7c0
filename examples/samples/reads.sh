# Makes up the reads of twenty samples, 200 numbers each.
mkdir -p reads
for k in 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19; do
    awk -v k="$k" 'BEGIN { for (j = 0; j < 200; j++) print (k * 7 + j * 13) % 101 }' > "reads/s$k.txt"
done

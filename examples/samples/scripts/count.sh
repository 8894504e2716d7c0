sort -n "$1" | uniq -c | awk '{print $2, $1}'

for $r in (stream("aqua")/river/reading, stream("brook")/river/reading)
group by $gauge := $r/gauge
order by $gauge
return <gauge n="{ $gauge }">{ max($r/level) }</gauge>

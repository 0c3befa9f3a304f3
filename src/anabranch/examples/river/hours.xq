for $w in stream("brook")/river/reading|ts diff 3600|
for $r in $w
group by $gauge := $r/gauge
return <hour from="{ window-start($w) }" gauge="{ $gauge }"><level>{ avg($r/level) }</level></hour>

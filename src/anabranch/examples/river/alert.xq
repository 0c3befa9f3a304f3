for $r in stream("brook")/river/reading
let $known := $r/level/text()?3600
where $r/level - $known >= 10
return <alert gauge="{ $r/gauge }" at="{ $r/ts }"><now>{ $r/level/text() }</now><known>{ $known }</known></alert>

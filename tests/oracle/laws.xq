(: The laws that standard XQuery does not have, written in standard XQuery 3.1.
   `translate.py` puts this text in front of every translated query.
   A condition is judged three-valued, as 'true', 'false' or 'error', so that one side of an `and` can settle it
   whatever the other raises. :)

(: --- values: LAWS 2.1 to 2.3 ---------------------------------------------------------------------------- :)

(: A node without declarations of the control namespace; where a name is in it, it comes with the name. :)
declare function o:plain($node as node()) as node() {
  typeswitch ($node)
    case element() return element { node-name($node) } {
      for $prefix in in-scope-prefixes($node)
      let $uri := namespace-uri-for-prefix($prefix, $node)
      where $prefix ne "xml" and string($uri) ne "urn:anabranch:stream"
      return namespace { $prefix } { $uri },
      $node/@*,
      $node/node() ! o:plain(.)
    }
    default return $node
};

(: Everything in `$items` is evaluated, where `exists` and its like could stop at the first. :)
declare function o:all($items as item()*) as item()* {
  fold-left($items, (), function($before, $item) { $before, $item })
};

(: What a path gives: nodes in document order, each once, or values. :)
declare function o:in-order($items as item()*) as item()* {
  if ($items instance of node()*) then $items/.
  else if (some $item in $items satisfies $item instance of node()) then error()
  else $items
};

(: Where a key stands that is nothing or NaN, where these are the greatest. :)
declare function o:empty-rank($items as item()*) as xs:integer {
  let $key := zero-or-one(data($items))
  return if (empty($key)) then 2 else if (normalize-space(string($key)) eq "NaN") then 1 else 0
};

declare function o:finite($value as xs:double) as xs:boolean { abs($value) lt xs:double("INF") };

declare function o:ten-to($exponent as xs:integer) as xs:decimal {
  let $zeros := string-join((1 to abs($exponent)) ! "0")
  return xs:decimal(if ($exponent ge 0) then "1" || $zeros else "0." || substring($zeros, 2) || "1")
};

(: The exact value of a number, or of text that is one; INF and NaN stay doubles. Other text raises FORG0001. :)
declare function o:exact($value as xs:anyAtomicType) as xs:numeric {
  if ($value instance of xs:decimal) then $value
  else if ($value instance of xs:untypedAtomic and $value castable as xs:decimal) then xs:decimal($value)
  else if (not(o:finite(xs:double($value)))) then xs:double($value)
  else if ($value instance of xs:double) then xs:decimal($value)
  else let $parts := tokenize(normalize-space($value), "[eE]")
       return xs:decimal($parts[1]) * o:ten-to(xs:integer($parts[2]))
};

(: Text from an item that is a dateTime, or such a value. :)
declare function o:is-moment($value as xs:anyAtomicType) as xs:boolean {
  $value instance of xs:dateTime or ($value instance of xs:untypedAtomic and $value castable as xs:dateTime)
};

(: `min` and `max` see numbers and text from items as doubles, or all of them as dateTimes; Saxon's own leave off at
   the first NaN. :)
declare function o:ordered($items as item()*) as xs:anyAtomicType* {
  o:all(let $values := data($items), $are-moments := every $value in $values satisfies o:is-moment($value)
        for $value in $values
        return if ($are-moments) then xs:dateTime($value)
               else if ($value instance of xs:untypedAtomic or $value instance of xs:numeric) then xs:double($value)
               else $value)
};

declare function o:are-durations($values as xs:anyAtomicType*) as xs:boolean {
  exists($values) and (every $value in $values satisfies $value instance of xs:duration)
};

declare function o:sum($items as item()*) as xs:anyAtomicType {
  if (o:are-durations(data($items))) then sum(data($items)) else
  let $values := data($items) ! o:exact(.)
  return if (empty($values)) then 0 else xs:double(sum($values))
};

(: The nearest double: 400 digits of the quotient, and one more that says whether it goes on behind them. :)
declare function o:avg($items as item()*) as xs:anyAtomicType? {
  if (o:are-durations(data($items))) then avg(data($items)) else
  let $values := data($items) ! o:exact(.)
  return
    if (empty($values)) then ()
    else if (exists($values[. instance of xs:double])) then xs:double(avg($values))
    else
      let $sum := sum($values), $scaled := abs($sum) * o:ten-to(400), $count := count($values)
      let $digits := string($scaled idiv $count) || (if ($scaled mod $count eq 0) then "0" else "1")
      return xs:double((if ($sum lt 0) then "-" else "") || $digits || "e-401")
};

(: Of numbers that rise; those that are infinite are doubles. :)
declare function o:median($items as item()*) as xs:double? {
  let $values := o:all(data($items) ! o:exact(.)), $count := count($values)
  return
    if (empty($values)) then ()
    else if (some $value in $values satisfies $value ne $value) then xs:double("NaN")
    else
      let $sorted := sort($values), $middle := ($sorted[($count + 1) idiv 2], $sorted[$count idiv 2 + 1])
      return xs:double(($middle[1] + $middle[2]) * (if ($middle instance of xs:decimal+) then 0.5 else 1))
};

(: Newton's method from above, in whole numbers. :)
declare function o:root($square as xs:integer, $guess as xs:integer) as xs:integer {
  let $next := ($guess + $square idiv $guess) idiv 2
  return if ($next ge $guess) then $guess else o:root($square, $next)
};

(: 400 decimal places of the root, and one more that says whether it goes on behind them. :)
declare function o:stddev($items as item()*) as xs:double? {
  let $values := o:all(data($items) ! o:exact(.)), $count := count($values)
  return
    if ($count lt 2) then ()
    else if (exists($values[. instance of xs:double])) then xs:double("NaN")
    else
      let $sum := sum($values), $spread := ($count * sum($values ! (. * .)) - $sum * $sum) * o:ten-to(800)
      let $under := $count * ($count - 1), $square := xs:integer($spread idiv $under)
      let $root := o:root($square, xs:integer(o:ten-to(string-length(string($square)) idiv 2 + 1)))
      let $is-whole := $spread mod $under eq 0 and $root * $root eq $square
      return xs:double(string($root) || (if ($is-whole) then "0" else "1") || "e-401")
};

declare function o:compare($operator as xs:string, $a as xs:anyAtomicType, $b as xs:anyAtomicType) as xs:boolean {
  switch ($operator)
    case "=" return $a = $b
    case "!=" return $a != $b
    case "<" return $a < $b
    case "<=" return $a <= $b
    case ">" return $a > $b
    default return $a >= $b
};

(: Casts are written out, because Saxon finds `1e0 <= xs:untypedAtomic("NaN")` true. :)
declare function o:pair($operator as xs:string, $a as xs:anyAtomicType, $b as xs:anyAtomicType) as xs:boolean {
  let $texts := count(($a, $b)[. instance of xs:untypedAtomic])
  let $numbers := count(($a, $b)[. instance of xs:numeric])
  let $decimals := count(($a, $b)[. instance of xs:decimal])
  return
    if ($texts eq 2 and not($operator = ("=", "!=")) and $a castable as xs:double and $b castable as xs:double)
    then o:compare($operator, o:exact($a), o:exact($b))
    else if ($texts eq 2 and not($operator = ("=", "!=")) and o:is-moment($a) and o:is-moment($b))
    then o:compare($operator, xs:dateTime($a), xs:dateTime($b))
    else if ($texts eq 1 and $decimals eq 1)
    then o:compare($operator, o:exact($a), o:exact($b))
    else if ($numbers ge 1 and $texts + $numbers eq 2)
    then o:compare($operator, xs:double($a), xs:double($b))
    else o:compare($operator, $a, $b)
};

declare function o:holds($operator as xs:string, $left as item()*, $right as item()*) as xs:boolean {
  o:some(
    for $a in data($left), $b in data($right)
    return try { string(o:pair($operator, $a, $b)) } catch * { "error" }
  )
};

(: Where a value stands in `order by`: nothing, NaN, numbers by size, times by type, text; then the key within its
   place. :)
declare function o:place($key as xs:anyAtomicType?) as xs:integer {
  if (empty($key)) then 0
  else if (o:is-moment($key)) then 5
  else if ($key instance of xs:date) then 6
  else if ($key instance of xs:time) then 7
  else if ($key instance of xs:dayTimeDuration) then 8
  else if ($key instance of xs:yearMonthDuration) then 9
  else if ($key instance of xs:string or not($key castable as xs:double)) then 10
  else let $value := xs:double($key)
       return if ($value ne $value) then 1 else if (o:finite($value)) then 3 else if ($value lt 0) then 2 else 4
};
declare function o:size($key as xs:anyAtomicType?) as xs:numeric {
  let $second := xs:dayTimeDuration("PT1S")
  return switch (o:place($key))
    case 5 return (xs:dateTime($key) - xs:dateTime("1970-01-01T00:00:00Z")) div $second
    case 6 return ($key - xs:date("1970-01-01Z")) div $second
    case 7 return ($key - xs:time("00:00:00Z")) div $second
    case 8 return $key div $second
    case 9 return $key div xs:yearMonthDuration("P1M")
    default return
  if (o:place($key) ne 3) then 0 else if ($key instance of xs:boolean) then xs:decimal($key) else o:exact($key)
};
declare function o:spelling($key as xs:anyAtomicType?) as xs:string { if (o:place($key) eq 10) then string($key) else "" };

(: --- errors: LAWS 2.4 ------------------------------------------------------------------------------------ :)

declare function o:some($judged as xs:string*) as xs:boolean {
  if ($judged = "true") then true() else if ($judged = "error") then error() else false()
};
declare function o:every($judged as xs:string*) as xs:boolean {
  if ($judged = "false") then false() else if ($judged = "error") then error() else true()
};

(: --- partitions: LAWS 1.2 -------------------------------------------------------------------------------- :)

(: The items of a stream whose partitions are merged by time, ties to the first, each with the number of its partition.
   An item waits for those before it in its partition, so what counts is the largest time up to it; one without a time
   has that of the item before. :)
declare function o:merged($partitions as document-node()*, $time as function(*)) as map(*)* {
  let $arrivals :=
    for $partition at $rank in $partitions
    return fold-left($partition/*/*, [], function($arrived, $item) {
      let $before := if (array:size($arrived) eq 0) then () else $arrived(array:size($arrived))?time
      let $now := (max(($before, o:number($time($item)))), 0)[1]
      return array:append($arrived, map { "item": $item, "rank": $rank, "time": $now })
    })?*
  for $arrival at $place in $arrivals
  order by $arrival?time, $arrival?rank, $place
  return $arrival
};

(: One document of them all, for the order of its nodes is that of the merge. :)
declare function o:one($root as element(), $merged as map(*)*) as document-node() {
  document { element { node-name($root) } { $merged?item } }
};

(: --- windows: LAWS 3.1 to 3.3 ---------------------------------------------------------------------------- :)

(: The positions k of the windows [k*step, k*step + size) that hold `$at`. :)
declare function o:positions($at as xs:decimal, $size as xs:decimal, $step as xs:decimal) as xs:integer* {
  if ($at lt 0) then ()
  else (if ($at lt $size) then 0 else ($at - $size) idiv $step + 1) to $at idiv $step
};

declare function o:number($nodes as node()*) as xs:decimal? {
  let $values := data($nodes)[. castable as xs:double][o:finite(xs:double(.))]
  return if (count($nodes) eq 1) then $values ! o:exact(.) else ()
};

(: Items as a window sees them arrive: its positions for them, and how far it has come with them.
   A count window is a window over the numbers of the chosen items, which has come to n with the n-th of them.
   A time window has come as far as the stream's partitions all have; what is late, each decides for itself. :)
declare function o:arrivals($window as map(*)) as map(*)* {
  let $begin := map { "arrived": [], "largest": map { }, "reach": 0, "time": () }
  return fold-left($window?items, $begin, function($state, $item) {
    let $chosen := try { exists($window?choose($item)) } catch * { false() }
    let $at := if ($window?timed) then o:number($window?reference($item)) else $state?reach[$chosen]
    let $partition := $window?partition[1 + array:size($state?arrived)]
    let $late := $window?timed and $at lt $state?largest($partition)
    let $largest := if (empty($at)) then $state?largest
      else map:put($state?largest, $partition, max(($state?largest($partition), $at)))
    let $slowest := if (map:size($largest) eq $window?partitions) then min($largest?*) else ()
    let $reach := max(($state?reach, if ($window?timed) then $slowest else $at + 1))
    let $time := (max(($state?time, o:number($window?time($item)))), 0)[1]
    let $arrival := map {
      "item": $item,
      "positions": if ($chosen and exists($at) and not($late)) then o:positions($at, $window?size, $window?step) else (),
      "reach": $reach,
      "time": $time
    }
    let $arrived := array:append($state?arrived, $arrival)
    return map { "arrived": $arrived, "largest": $largest, "reach": $reach, "time": $time }
  })?arrived?*
};

declare function o:windows($window as map(*)) as array(*)* {
  let $arrivals := o:arrivals($window), $reach := max($arrivals?reach)
  return
    for $arrival in $arrivals, $k in $arrival?positions
    where $window?timed or $k * $window?step + $window?size le $reach
    let $item := $arrival?item
    group by $k
    order by $k
    return array { $item }
};

(: --- joins: LAWS 3.5 ------------------------------------------------------------------------------------- :)

(: The movements of the windows of a step join, in order: for each `for` the items that take part in it.
   Arrivals are merged by time, ties to the stream named first; a self-join feeds an item to one `for` after the
   other, so each takes a turn of its own. What moves is a window k of one `for` that something enters, that is, whose
   first position is k; it does so when its end is reached, or else after the end of input in the order of ends. :)
declare function o:movements($sides as map(*)*) as array(*)* {
  let $arrivals :=
    for $side at $number in $sides, $arrival at $place in o:arrivals($side)
    order by $arrival?time, $side?stream, $place, $number
    return map:put($arrival, "side", $number)
  let $turns := for $arrival at $turn in $arrivals return map:put($arrival, "turn", $turn)
  let $moves :=
    for $side at $number in $sides
    let $own := $turns[?side eq $number]
    for $k in distinct-values($own ! head(?positions))
    let $end := $k * $side?step + $side?size
    let $turn := head($own[?reach ge $end])?turn
    where exists($turn) or $side?timed
    order by ($turn, count($turns) + 1)[1], $end[empty($turn)] empty least, $number, $k
    return map { "side": $number, "k": $k, "turn": ($turn, count($turns) + 1)[1] }
  for $move at $nth in $moves
  return array:join(
    for $side at $number in $sides
    let $own := $turns[?side eq $number]
    let $reach := max($own[?turn lt $move?turn]?reach)
    let $reached := ($reach[. ge $side?size] - $side?size) idiv $side?step
    let $stands := max(($reached, subsequence($moves, 1, $nth - 1)[?side eq $number]?k))
    return [
      if ($number eq $move?side) then $own[head(?positions) = $move?k]?item else $own[?positions = $stands]?item
    ]
  )
};

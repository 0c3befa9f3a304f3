(: Steps over annotated documents (`annotated.py`), and the qualifiers of LAWS 5.2 and 5.4, in standard XQuery 3.1. :)

declare function h:wrapper($node as node()) as xs:boolean { namespace-uri-from-QName(node-name($node)) = "urn:life" };

(: What stands directly in a node: all of it, or what shows. :)
declare function h:all($node as node()) as node()* {
  for $child in $node/node() return if (h:wrapper($child)) then h:all($child) else $child
};
declare function h:child($node as node()) as node()* {
  for $child in $node/node()
  return
    if ($child/self::v:chain) then $child/v:version[1] ! h:child(.)
    else if (h:wrapper($child)) then h:child($child)
    else $child
};
declare function h:below($node as node()) as node()* { h:child($node) ! (., h:below(.)) };
declare function h:here($node as node()) as node()* { $node, h:below($node) };
declare function h:attribute($node as node()) as attribute()* { $node/@*[not(namespace-uri() = "urn:life")] };
declare function h:parent($node as node()) as node()? {
  if ($node/self::attribute()) then $node/..
  else ($node/ancestor::node()[not(h:wrapper(.))])[last()]
};

(: The node as whoever copies or reads it sees it. :)
declare function h:plain($items as item()*) as item()* {
  for $item in $items
  return
    typeswitch ($item)
      case element() return element { node-name($item) } { h:attribute($item), h:plain(h:child($item)) }
      case document-node() return document { h:plain(h:child($item)) }
      default return $item
};

(: The versions around a node up to its parent, outermost first, and the places that they have in their chains. :)
declare function h:versions($node as node()) as element(v:version)* {
  let $parent := h:parent($node)
  return if ($node/self::attribute()) then () else $node/ancestor::v:version[h:parent(.) is $parent]
};
declare function h:places($node as node()) as xs:integer* {
  h:versions($node) ! count(preceding-sibling::v:version)
};
declare function h:shown($node as node()) as xs:boolean { not(h:places($node) > 0) };

(: Who has the time at which a node came: it, or the wrapper of a text, or the element of an attribute. :)
declare function h:came($node as node()) as element()? {
  ($node/self::element(), $node/self::text()/parent::v:text, $node/self::attribute()/..)[1]
};

(: Who bears the life of a node: the innermost version around it, or else who has its time. :)
declare function h:bearer($node as node()) as element()? { (h:versions($node)[last()], h:came($node))[1] };

declare function h:gives($node as node(), $kind as xs:string, $window as xs:boolean, $amount as xs:decimal,
                         $now as xs:decimal) as xs:boolean {
  if ($kind eq "version") then
    let $older := h:places($node)[. gt 0]
    return
      if (empty($older)) then $window or $amount eq 0
      else count($older) eq 1 and (if ($window) then $older le $amount else $older eq $amount)
  else
    let $life := h:bearer($node), $then := $now - $amount
    (: a node may have come later than the version that it is in, and nothing lives before it arrived :)
    let $starts := ($life/@v:st, h:came($node)/@v:st)
    return not($life/@v:et/xs:decimal(.) <= $then) and ($window or not($starts ! xs:decimal(.) > $then))
};

(: The results of a step with a qualifier: `$reach` gives what the step reaches from where it stands in, whatever version
   it is in, and `$fits` tells which of that are results; `$hosts` are the nodes in which to look. :)
declare function h:qualified($hosts as node()*, $deep as xs:boolean, $fits as function(node()) as xs:boolean,
                             $gives as function(node()) as xs:boolean) as node()* {
  let $results := ($hosts ! h:all(.))[h:shown(.) or $gives(.)][$fits(.)]
  let $outer := $results[empty(ancestor::node() intersect $results)]
  let $given := $outer[$gives(.)]
  let $inner := if ($deep) then $given ! h:below(.) else ($hosts[ancestor-or-self::node() intersect $given] ! h:child(.))
  return ($given | $inner[$fits(.)])
};

(: The versions of nodes that are there already. :)
declare function h:same($nodes as item()*, $gives as function(node()) as xs:boolean) as item()* {
  for $node in $nodes
  let $version := h:versions($node)[last()]
  let $others := if (empty($version)) then () else
    h:all(h:parent($node))[h:versions(.)[last()]/.. is $version/..][not(deep-equal(h:places(.), h:places($node)))]
      [node-name(.) = node-name($node) or (empty(node-name(.)) and empty(node-name($node)))]
  return ($node | $others)[$gives(.)]
};

import type { Node, ScannedObject } from '../json/scanned-object.ts'

/** Types as OpenAPI spells them; other dialects use lower case. */
const TYPES: ReadonlySet<unknown> = new Set([
  'ARRAY',
  'BOOLEAN',
  'INTEGER',
  'NULL',
  'NUMBER',
  'OBJECT',
  'STRING',
])

/** Members of a schema that contain one schema or a list of schemas. */
const SCHEMAS = ['items', 'additionalProperties', 'not', 'anyOf', 'oneOf', 'allOf', 'prefixItems'] as const
/** Members of a schema that contain schemas by name. */
const NAMED_SCHEMAS = ['properties', 'patternProperties', '$defs', 'definitions', 'defs'] as const

const UPPER_A = 0x41
const UPPER_Z = 0x5a
const TO_LOWER = 0x20

/**
 * Returns the text of an OpenAPI-style schema with its types in lower case. All other bytes stay as they are,
 * because names of properties, values of enumerations and defaults may look like types.
 */
export function lowerCaseTypes(scan: ScannedObject, schema: Node): string {
  const start = scan.startOf(schema)
  const copy = Buffer.from(scan.bytes.subarray(start, scan.endOf(schema)))
  for (const type of typesIn(scan, schema)) {
    if (scan.kindOf(type) !== 'string' || !TYPES.has(scan.parse(type))) continue
    for (let at = scan.startOf(type) - start; at < scan.endOf(type) - start; at++) {
      const byte = copy[at] as number
      if (byte >= UPPER_A && byte <= UPPER_Z) copy[at] = byte + TO_LOWER
    }
  }
  return copy.toString()
}

/** Finds the values of `type` in a schema and in the schemas inside it. */
function typesIn(scan: ScannedObject, node: Node): Node[] {
  if (scan.kindOf(node) === 'array') return scan.elements(node).flatMap((element) => typesIn(scan, element))
  if (scan.kindOf(node) !== 'object') return []
  const type = scan.memberOf(node, 'type')
  const own = type === undefined ? [] : scan.kindOf(type) === 'array' ? scan.elements(type) : [type]
  const inner = SCHEMAS.flatMap((name) => scan.memberOf(node, name) ?? [])
  const named = NAMED_SCHEMAS.flatMap((name) => {
    const holder = scan.memberOf(node, name)
    return holder !== undefined && scan.kindOf(holder) === 'object' ? scan.values(holder) : []
  })
  return [...own, ...[...inner, ...named].flatMap((one) => typesIn(scan, one))]
}

import type { Node, ScannedObject } from '../../json/scanned-object.ts'

/** Creates the id of an item that has none; `prefix` depends on its type. */
type NewId = (prefix: string) => string

/** Prefixes of ids by the type of an item. */
const PREFIXES: ReadonlyMap<string, string> = new Map([
  ['message', 'msg'],
  ['reasoning', 'rs'],
  ['function_call', 'fc'],
  ['custom_tool_call', 'ctc'],
])

/** The items of a request's input; none if the input is a text. */
export function itemNodes(scan: ScannedObject): readonly Node[] {
  const input = scan.span('input')
  return input && scan.kindOf(input.node) === 'array'
    ? scan.elements(input.node).filter((item) => scan.kindOf(item) === 'object')
    : []
}

/**
 * The input items of a request as a JSON array, each with an id and a type; a text becomes one message.
 * Everything else stays as the client wrote it.
 */
export function inputItems(scan: ScannedObject, newId: NewId): string {
  const input = scan.span('input')
  if (!input || scan.kindOf(input.node) === 'null') return '[]'
  if (scan.kindOf(input.node) === 'string')
    return `[{"id":${JSON.stringify(newId('msg'))},"type":"message","role":"user","content":[{"type":"input_text","text":${scan.textOf(input.node)}}]}]`
  const items = scan.elements(input.node).map((node) => {
    const text = scan.textOf(node)
    if (scan.kindOf(node) !== 'object') return text
    const typeNode = scan.memberOf(node, 'type')
    const isTyped = typeNode !== undefined && scan.kindOf(typeNode) === 'string'
    const type = isTyped ? String(scan.parse(typeNode)) : 'message'
    const idNode = scan.memberOf(node, 'id')
    const hasId = idNode !== undefined && scan.kindOf(idNode) === 'string'
    // Added members come last, because of duplicate members the last one is read.
    const added = [
      ...(hasId ? [] : [`"id":${JSON.stringify(newId(PREFIXES.get(type) ?? 'item'))}`]),
      ...(isTyped ? [] : ['"type":"message"']),
    ]
    if (added.length === 0) return text
    const inside = text.slice(1, -1).trimEnd()
    return `{${inside}${inside.trim() === '' ? '' : ','}${added.join(',')}}`
  })
  return `[${items.join(',')}]`
}

import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { isSignatureEnvelope } from '../../signature-envelope.ts'
import { applyEdits } from '../../json/json-edit.ts'
import { RESPONSE_LIMITS, scanObject } from '../../json/json-scan.ts'
import { asRecord } from '../../json/record.ts'
import { functionItems, mcpCallAsFunction } from '../mcp-items.ts'

/** Creates an id for an item without one. `prefix` depends on the type of the item. */
type NewId = (prefix: string) => string

/** Prefixes of item ids, by the type of the item. */
const PREFIXES: ReadonlyMap<string, string> = new Map([
  ['message', 'msg'],
  ['reasoning', 'rs'],
  ['function_call', 'fc'],
  ['custom_tool_call', 'ctc'],
])

/** The items of a request's input; empty if the input is a text. */
export function inputItemNodes(scan: ScannedObject): readonly Node[] {
  const input = scan.span('input')
  return input && scan.kindOf(input.node) === 'array'
    ? scan.elements(input.node).filter((item) => scan.kindOf(item) === 'object')
    : []
}

/**
 * Returns the input items of a request as a JSON array, each with an id and a type. An input that is a text
 * becomes one message. Everything else remains as the client wrote it.
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
    // Added members come last, because if a name occurs twice, its last value counts.
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

/** Reference to an item of a response that this gateway converted from another protocol. */
export interface ItemReference {
  readonly node: Node
  readonly id: string
  /** Id of the response to which the item belongs. The item's id contains it. */
  readonly responseId: string
}

/**
 * Matches ids of items that this gateway wrote: a short prefix, the id of the response, and the index of the
 * item.
 */
const ITEM_ID = /^[a-z]{2,4}_([0-9a-f]{32})\d{3,6}$/

/** Whether this gateway gave an item its id. */
export function isGatewayItemId(id: string): boolean {
  return ITEM_ID.test(id)
}

/** The id of an item in a response of this gateway. `like`: an id with the prefix of its type. */
export function gatewayItemId(responseKey: string, index: number, like: string): string {
  const prefix = /^[a-z]{2,4}(?=_)/.exec(like)?.[0] ?? 'msg'
  return `${prefix}_${responseKey}${String(index).padStart(3, '0')}`
}

/** Finds the references in a request's input to items of responses that this gateway converted. */
export function itemReferences(scan: ScannedObject): ItemReference[] {
  const input = scan.span('input')
  if (!input || scan.kindOf(input.node) !== 'array') return []
  return scan.elements(input.node).flatMap((node) => {
    const id = referredId(scan, node) ?? ''
    const [, key] = ITEM_ID.exec(id) ?? []
    return key === undefined ? [] : [{ node, id, responseId: `resp_${key}` }]
  })
}

/** Returns the ids of all items that a request's input refers to, wherever they are stored. */
export function referredIds(scan: ScannedObject): readonly string[] {
  return inputItemNodes(scan).flatMap((node) => referredId(scan, node) ?? [])
}

/** Whether a request's input contains a reference to an item. */
export function hasItemReferences(scan: ScannedObject): boolean {
  return inputItemNodes(scan).some((node) => referredId(scan, node) !== undefined)
}

/**
 * Returns the request with references replaced by the items to which they refer. A reference whose id is not
 * in `items` remains. The result may have as many values as a response; above that, `invalid_json` is thrown.
 */
export function replaceItemReferences(
  scan: ScannedObject,
  items: ReadonlyMap<string, string>,
): ScannedObject {
  const input = scan.span('input')
  if (!input) return scan
  const known = new Map(itemReferences(scan).map(({ node, id }) => [node, items.get(id)]))
  const texts = scan.elements(input.node).map((node) => known.get(node) ?? scan.textOf(node))
  const replace = new Map([['input', `[${texts.join(',')}]`]])
  return scanObject(applyEdits(scan.bytes, scan, { remove: [], replace }), RESPONSE_LIMITS)
}

/**
 * Whether a request's input contains thoughts that a provider of this protocol cannot read, because a
 * provider of another protocol made them.
 */
export function hasThoughtsOfOtherDialects(scan: ScannedObject): boolean {
  const input = scan.span('input')
  if (!input || scan.kindOf(input.node) !== 'array') return false
  return scan.elements(input.node).some((node) => scan.kindOf(node) === 'object' && isForeign(scan, node))
}

/**
 * Returns the JSON text of a request's input for a provider of this protocol. Items that the gateway created
 * are sent without their ids, because the provider would search for these ids, and calls of its MCP tools as calls of
 * functions. Thoughts of providers with other protocols are left out.
 */
export function inputForProvider(scan: ScannedObject): string {
  const input = scan.span('input')
  if (!input || scan.kindOf(input.node) !== 'array') return input ? scan.textOf(input.node) : '[]'
  const texts = scan.elements(input.node).flatMap((node) => {
    const text = scan.textOf(node)
    if (scan.kindOf(node) !== 'object' || referredId(scan, node) !== undefined) return [text]
    if (isForeign(scan, node)) return []
    if (textIn(scan, node, 'type') === 'mcp_list_tools' && isConverted(scan, node)) return []
    if (!isConverted(scan, node)) return [text]
    if (textIn(scan, node, 'type') === 'mcp_call')
      return functionItems(mcpCallAsFunction(asRecord(scan.parse(node)) ?? {}))
    const bytes = Buffer.from(text)
    return [
      applyEdits(bytes, scanObject(bytes, RESPONSE_LIMITS), {
        remove: ['id'],
        replace: new Map(),
      }).toString(),
    ]
  })
  return `[${texts.join(',')}]`
}

function isForeign(scan: ScannedObject, node: Node): boolean {
  if (textIn(scan, node, 'type') !== 'reasoning') return false
  return isConverted(scan, node) || isSignatureEnvelope(textIn(scan, node, 'encrypted_content') ?? '')
}

/** Whether an item belongs to a response that this gateway converted, or made of several. */
function isConverted(scan: ScannedObject, node: Node): boolean {
  return isGatewayItemId(textIn(scan, node, 'id') ?? '')
}

/** Returns the id in a reference to an item; undefined for any other item. A reference may have no `type`. */
function referredId(scan: ScannedObject, node: Node): string | undefined {
  if (scan.kindOf(node) !== 'object') return undefined
  const type = scan.memberOf(node, 'type')
  const isReference =
    type === undefined || scan.kindOf(type) === 'null'
      ? scan.memberOf(node, 'role') === undefined
      : textIn(scan, node, 'type') === 'item_reference'
  return isReference ? textIn(scan, node, 'id') : undefined
}

function textIn(scan: ScannedObject, node: Node, member: string): string | undefined {
  const found = scan.memberOf(node, member)
  return found !== undefined && scan.kindOf(found) === 'string' ? String(scan.parse(found)) : undefined
}

/**
 * Whether a request's input contains only messages, without references, reasoning or encrypted content. For
 * most requests, it is enough to read the first members of each item.
 */
export function hasOnlyMessages(scan: ScannedObject): boolean {
  const input = scan.span('input')
  if (!input || scan.kindOf(input.node) !== 'array') return true
  for (const item of scan.elements(input.node)) if (!isMessage(scan, item)) return false
  return true
}

function isMessage(scan: ScannedObject, item: Node): boolean {
  if (scan.kindOf(item) !== 'object' || scan.memberOf(item, 'role') === undefined) return false
  const type = scan.memberOf(item, 'type')
  const isTyped = type !== undefined && scan.kindOf(type) !== 'null'
  if (isTyped && (scan.kindOf(type) !== 'string' || scan.parse(type) !== 'message')) return false
  return scan.memberOf(item, 'encrypted_content') === undefined
}

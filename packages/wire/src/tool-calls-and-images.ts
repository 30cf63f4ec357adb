import { stringMember, decodeStringAt } from './found-texts.ts'
import { scanObject } from './json/json-scan.ts'
import { type Node, ROOT, type ScannedObject } from './json/scanned-object.ts'

/** A tool call in any protocol. */
export interface FoundToolCall {
  readonly id: string
  readonly name: string
  /** The arguments as JSON, or the text for a custom tool. */
  readonly arguments: string
}

export interface ToolCallsAndImages {
  readonly calls: FoundToolCall[]
  /** URLs of images. Images that the request or response itself contains are left out. */
  readonly images: string[]
}

/** Members that may contain the input of a tool call, in the order in which they are searched. */
const INPUTS = ['arguments', 'input', 'args'] as const
const IDS = ['call_id', 'id'] as const
/** Types of objects that contain the name and the input of a call themselves. So do those that end in `tool_use`. */
const CALLS: ReadonlySet<string> = new Set([
  'custom_tool_call',
  'function_call',
  'mcp_approval_request',
  'mcp_call',
])
/**
 * Members with an object that contains the name and input of a tool call, while id and type of the call are
 * beside the member.
 */
const NESTED = ['function', 'custom', 'functionCall'] as const
/** Members that contain the URL of an image, or an object with the URL in its member `url`. */
const IMAGES: ReadonlySet<string> = new Set(['image_url', 'fileUri', 'file_uri'])
const MAX_PARTS = 10_000
/** Maximum length of a URL, in bytes. */
const MAX_ADDRESS = 8192

/** Finds the tool calls and the URLs of images in a request, a response or an event of any protocol. */
export function findToolCallsAndImages(scan: ScannedObject): ToolCallsAndImages {
  const found: ToolCallsAndImages = { calls: [], images: [] }
  walk(scan, ROOT, '', found)
  return found
}

function walk(scan: ScannedObject, node: Node, name: string, found: ToolCallsAndImages): void {
  if (found.calls.length + found.images.length >= MAX_PARTS) return
  switch (scan.kindOf(node)) {
    case 'array':
      for (const one of scan.elements(node)) walk(scan, one, name, found)
      return
    case 'object': {
      const call = callIn(scan, node, name)
      if (call) found.calls.push(call)
      else
        for (const { key, node: value } of scan.entries(node))
          walk(scan, value, nameOf(scan, node, name, key), found)
      return
    }
    case 'string':
      if (IMAGES.has(name)) addImage(scan, node, found)
      return
    case 'number':
    case 'true':
    case 'false':
    case 'null':
  }
}

/**
 * Returns the name by which a member is recognized: `url` in the object of an image is recognized as
 * `image_url`, all others by their own name.
 */
function nameOf(scan: ScannedObject, object: Node, around: string, key: string): string {
  if (key !== 'url') return key
  const isSource = around === 'source' && stringMember(scan, object, 'type') === 'url'
  return around === 'image_url' || isSource ? 'image_url' : key
}

function addImage(scan: ScannedObject, node: Node, found: ToolCallsAndImages): void {
  const [from, to] = [scan.startOf(node), scan.endOf(node)]
  // A longer URL is a `data:` URL, which contains the image itself.
  const address = to - from > MAX_ADDRESS ? '' : decodeStringAt(scan.bytes, from, to)
  if (/^https?:\/\//i.test(address)) found.images.push(address)
}

function callIn(scan: ScannedObject, node: Node, around: string): FoundToolCall | undefined {
  const type = stringMember(scan, node, 'type') ?? ''
  for (const member of NESTED) {
    const inner = scan.memberOf(node, member)
    if (inner === undefined || scan.kindOf(inner) !== 'object') continue
    const call = readCall(scan, inner, node)
    // Without arguments, the object is not a call but the declaration of a tool, which has parameters.
    if (call) return call
  }
  const isCall = CALLS.has(type) || type.endsWith('tool_use')
  return isCall || around === 'function_call' ? readCall(scan, node, node) : undefined
}

function readCall(scan: ScannedObject, node: Node, outer: Node): FoundToolCall | undefined {
  const name = stringMember(scan, node, 'name')
  if (name === undefined) return undefined
  for (const member of INPUTS) {
    const input = scan.memberOf(node, member)
    if (input === undefined) continue
    const text = scan.kindOf(input) === 'string' ? (scan.parse(input) as string) : scan.textOf(input)
    return { id: idIn(scan, outer) ?? idIn(scan, node) ?? '', name, arguments: text }
  }
  return undefined
}

function idIn(scan: ScannedObject, node: Node): string | undefined {
  for (const member of IDS) {
    const id = stringMember(scan, node, member)
    if (id !== undefined) return id
  }
  return undefined
}

/** A string or number in a JSON text, with its offsets in the bytes. */
export interface JsonStringOrNumber {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** Numbers with at least this many characters are checked by guards, because they may be personal data. */
export const MIN_NUMBER_LENGTH = 6
const PREFIX = '{"a":'

/**
 * Finds the strings (including names of members) and long numbers in a JSON text; undefined if it is not
 * JSON.
 */
export function jsonTexts(
  text: string,
): { readonly bytes: Buffer; readonly texts: JsonStringOrNumber[] } | undefined {
  const scan = scanned(`${PREFIX}${text}}`)
  if (!scan) return undefined
  const texts: JsonStringOrNumber[] = []
  const collect = (node: Node): void => {
    const [from, to] = [scan.startOf(node), scan.endOf(node)]
    const kind = scan.kindOf(node)
    if (kind === 'string') texts.push({ from, to, text: scan.parse(node) as string })
    else if (kind === 'number' && to - from >= MIN_NUMBER_LENGTH)
      texts.push({ from, to, text: scan.textOf(node) })
    else if (kind === 'array') scan.elements(node).forEach(collect)
    else if (kind === 'object')
      for (let key = scan.firstKey(node); key !== undefined; key = scan.nextKey(key, node)) {
        collect(key)
        collect(scan.valueOf(key))
      }
  }
  const whole = scan.memberOf(ROOT, 'a')
  if (whole !== undefined) collect(whole)
  return { bytes: scan.bytes, texts }
}

/**
 * Returns the JSON text in the bytes that `jsonTexts` has returned. The bytes may have been changed since.
 */
export function jsonTextOf(bytes: Buffer): string {
  return bytes.toString('utf8', PREFIX.length, bytes.length - 1)
}

function scanned(text: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(text))
  } catch {
    return undefined
  }
}

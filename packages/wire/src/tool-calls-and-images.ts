import { stringIn, textAt } from './guarded-texts.ts'
import { scanObject } from './json/json-scan.ts'
import { type Node, ROOT, type ScannedObject } from './json/scanned-object.ts'

/** A tool call in any protocol. */
export interface FoundToolCall {
  readonly id: string
  readonly name: string
  /** The arguments as JSON, or the text for a custom tool. */
  readonly arguments: string
}

/** Tool calls and images in a request or a response. */
export interface ToolCallsAndImages {
  readonly calls: FoundToolCall[]
  /** Addresses of images; images contained as data are left out. */
  readonly images: string[]
}

/** Members that may contain the input of a call, in the order in which they are searched. */
const INPUTS = ['arguments', 'input', 'args'] as const
const IDS = ['call_id', 'id'] as const
/** Members that contain name and input of a call, while the object around them contains its id and type. */
const NESTED = ['function', 'custom', 'functionCall'] as const
/** Members that contain the address of an image, or an object with the address in `url`. */
const IMAGES: ReadonlySet<string> = new Set(['image_url', 'fileUri', 'file_uri'])
const MAX_PARTS = 10_000
/** Maximum length of an address, in bytes. */
const MAX_ADDRESS = 8192

/** Finds the tool calls and the addresses of images in a request, a response or an event of any protocol. */
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

/** Name under which a member is treated: `url` inside an image counts as `image_url`. */
function nameOf(scan: ScannedObject, object: Node, around: string, key: string): string {
  if (key !== 'url') return key
  const isSource = around === 'source' && stringIn(scan, object, 'type') === 'url'
  return around === 'image_url' || isSource ? 'image_url' : key
}

function addImage(scan: ScannedObject, node: Node, found: ToolCallsAndImages): void {
  const [from, to] = [scan.startOf(node), scan.endOf(node)]
  // A longer address contains the image itself.
  const address = to - from > MAX_ADDRESS ? '' : textAt(scan.bytes, from, to)
  if (/^https?:\/\//i.test(address)) found.images.push(address)
}

function callIn(scan: ScannedObject, node: Node, around: string): FoundToolCall | undefined {
  const type = stringIn(scan, node, 'type') ?? ''
  for (const member of NESTED) {
    const inner = scan.memberOf(node, member)
    if (inner === undefined || scan.kindOf(inner) !== 'object') continue
    const call = readCall(scan, inner, node)
    // The declaration of a tool is not a call: it has parameters instead of arguments.
    if (call) return call
  }
  const isCall = type === 'function_call' || type === 'custom_tool_call' || type.endsWith('tool_use')
  return isCall || around === 'function_call' ? readCall(scan, node, node) : undefined
}

function readCall(scan: ScannedObject, node: Node, outer: Node): FoundToolCall | undefined {
  const name = stringIn(scan, node, 'name')
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
    const id = stringIn(scan, node, member)
    if (id !== undefined) return id
  }
  return undefined
}

/** A string or number in a JSON text, with its offsets in the bytes. */
export interface JsonText {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** Minimum number of characters for a number to count as personal data. */
export const MIN_NUMBER = 6
const PREFIX = '{"a":'

/**
 * Finds the strings (including names of members) and long numbers in a JSON text; undefined if it is not
 * JSON.
 */
export function jsonTexts(text: string): { readonly bytes: Buffer; readonly texts: JsonText[] } | undefined {
  const scan = scanned(`${PREFIX}${text}}`)
  if (!scan) return undefined
  const texts: JsonText[] = []
  const collect = (node: Node): void => {
    const [from, to] = [scan.startOf(node), scan.endOf(node)]
    const kind = scan.kindOf(node)
    if (kind === 'string') texts.push({ from, to, text: scan.parse(node) as string })
    else if (kind === 'number' && to - from >= MIN_NUMBER) texts.push({ from, to, text: scan.textOf(node) })
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

/** The JSON text in the bytes that `jsonTexts` returned, after they may have been changed. */
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

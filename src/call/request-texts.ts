import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { Node, ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Shape } from '@sluice/wire/shape/define-shape'
import { indexOf, kindOfCode, outlineOf, ownerOfCode } from '@sluice/wire/shape/outline'
import { KIND, OWNER } from '@sluice/wire/shape/vocabulary'

/** Maximum bytes of a request that is searched for texts; searching a larger one would delay other calls. */
const MAX_BODY_BYTES = 1024 * 1024

/** The parts of a request in which texts are found. */
export interface RequestSources {
  /** The body in JSON; empty for a form. */
  readonly body: Buffer
  /** Returns the shape of the body; undefined for a form. */
  readonly shapeOf: (scan: ScannedObject) => Shape | undefined
  /** Texts of the fields of a form; undefined if some of them are only on disk. */
  readonly fields: readonly string[] | undefined
  /** The URL's path with its query. */
  readonly url: string
}

export interface RequestContent {
  /** All strings in the request, among them names and settings. */
  readonly texts: readonly string[]
  /** Strings that belong to the conversation, or may, because the shape does not describe them. */
  readonly values: readonly string[]
}

const NO_TEXTS: RequestContent = { texts: [], values: [] }
const COLON = 0x3a
const IS_SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])

/** Kinds of strings that are no content, whoever wrote them. */
const WORDS: ReadonlySet<number> = new Set([
  KIND.id,
  KIND.mark,
  KIND.name,
  KIND.role,
  KIND.sealed,
  KIND.signature,
  KIND.term,
])

/** Lists the texts of a request; undefined if it is too large, or not in memory. */
export function textsOfRequest({ body, shapeOf, fields, url }: RequestSources): RequestContent | undefined {
  if (body.length > MAX_BODY_BYTES || fields === undefined) return undefined
  const inQuery = url.includes('?') ? [...new URLSearchParams(url.slice(url.indexOf('?'))).values()] : []
  const found = body.length === 0 ? NO_TEXTS : textsOfBody(body, shapeOf)
  return found && { texts: [...fields, ...inQuery, ...found.texts], values: [...fields, ...found.values] }
}

function textsOfBody(body: Buffer, shapeOf: RequestSources['shapeOf']): RequestContent | undefined {
  const scan = scanned(body)
  const shape = scan && shapeOf(scan)
  if (!shape) {
    // The gateway refuses some JSON, such as repeated keys. Any of its strings may be content.
    const strings = stringsIn(body.toString())
    return strings && { texts: strings, values: strings }
  }
  const codes = outlineOf(scan, shape)
  const texts: string[] = []
  const values: string[] = []
  for (let node = 0; node < scan.tape.length; node += 3) {
    const code = codes[indexOf(node)] as number
    const kind = kindOfCode(code)
    if (kind === KIND.structure || scan.kindOf(node) !== 'string') continue
    const text = scan.parse(node) as string
    texts.push(text)
    // Definitions of tools are not a part of the conversation.
    if (WORDS.has(kind) || ownerOfCode(code) === OWNER.program || isKey(scan, node)) continue
    values.push(text)
    // Arguments of tool calls are JSON in a string.
    const inner = kind === KIND.arguments || kind === KIND.result ? stringsIn(text) : undefined
    if (!inner) continue
    // One by one: a call cannot have as many arguments as a list in JSON may have strings.
    for (const one of inner) {
      texts.push(one)
      values.push(one)
    }
  }
  return { texts, values }
}

function isKey({ bytes, tape }: ScannedObject, node: Node): boolean {
  let at = tape[node + 1] as number
  while (IS_SPACE.has(bytes[at] as number)) at += 1
  return bytes[at] === COLON
}

function scanned(body: Buffer): ScannedObject | undefined {
  try {
    return scanObject(body, RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}

/** The strings in an object or a list in JSON; undefined if the text is something else. */
function stringsIn(text: string): string[] | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  const strings: string[] = []
  try {
    JSON.parse(text, (_, value: unknown) => void (typeof value === 'string' && strings.push(value)))
    return strings
  } catch {
    return undefined
  }
}

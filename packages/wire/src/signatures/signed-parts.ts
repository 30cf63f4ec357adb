import { protocolsWithProperty } from '../protocols.ts'
import type {
  Conversation,
  MediaPart,
  OpaquePart,
  Part,
  ProviderSignature,
  ThinkingPart,
  ToolCallPart,
  Turn,
} from '../conversation.ts'
import { scanObject } from '../json/json-scan.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import { createHash } from 'node:crypto'
import { inputOrEmpty } from '../tool-input.ts'

type SignedThought = ThinkingPart & { readonly proof: ProviderSignature }

/**
 * An element of a reply that is stored: a thought that the model signed, or the length of a text between
 * thoughts.
 */
export type SignedElement =
  | SignedThought
  | OpaquePart
  /** The length of a text between thoughts, in UTF-16 code units. */
  | { readonly kind: 'said'; readonly length: number }

/**
 * What a model signed in one section of its reply. Sections end with a tool call; a reply without calls is
 * one section. The call, or the text of a reply without calls, is the anchor by which the section is found
 * again.
 */
export interface SignedParts {
  /** Elements between the previous tool call and this one; for a reply without calls, all elements. */
  readonly before: readonly SignedElement[]
  /** Elements after the last tool call of the reply. */
  readonly after: readonly SignedElement[]
}

/** Protocols whose providers sign parts of their replies. */
export const SIGNING_DIALECTS: ReadonlySet<unknown> = new Set(
  protocolsWithProperty(({ isSigned }) => isSigned),
)

/** Version of the format in which signed parts are stored. Texts in other versions are not read. */
const VERSION = 1

/** Writes signed parts as a text, to be stored. */
export function signedPartsText({ before, after }: SignedParts): string {
  return JSON.stringify({ version: VERSION, before, after })
}

/** Reads a text written by `signedPartsText`; undefined for any other text. */
export function readSignedParts(text: string): SignedParts | undefined {
  const { version, before, after } = parseRecord(text) ?? {}
  if (version !== VERSION || !areSlots(before) || !areSlots(after)) return undefined
  return { before, after }
}

function areSlots(value: unknown): value is readonly SignedElement[] {
  return Array.isArray(value) && value.every(isSlot)
}

function isSlot(value: unknown): boolean {
  const slot = asRecord(value)
  switch (slot?.['kind']) {
    case 'said':
      return Number.isSafeInteger(slot['length'])
    case 'thinking': {
      const proof = asRecord(slot['proof'])
      return (
        typeof slot['text'] === 'string' &&
        SIGNING_DIALECTS.has(proof?.['protocol']) &&
        typeof proof?.['value'] === 'string'
      )
    }
    case 'opaque':
      return SIGNING_DIALECTS.has(slot['protocol']) && asRecord(slot['value']) !== undefined
    default:
      return false
  }
}

/** Number of characters at each end of a file's data that are used to recognize it. */
const MEDIA_SAMPLE = 64

/**
 * A random part of an id: many letters and digits in a row, the beginning of a UUID, or base64url, which unlike a
 * name with a number behind it has a digit before a letter, and letters of both cases.
 */
const RANDOM =
  /(?=[a-zA-Z]{0,15}\d)[a-zA-Z\d]{16}|[\da-fA-F]{8}-[\da-fA-F]{4}-|(?<![\w-])(?=[\w-]*?\d[_-]*[a-zA-Z])(?=[\w-]*?[A-Z])(?=[\w-]*?[a-z])[\w-]{20}/

/**
 * Whether the id of a call occurs nowhere else, because a part of it is random. Other providers count the calls
 * of a conversation (`call_0`, `Bash:0`), or use the name of the tool.
 */
export function hasRandomId({ id, name }: Pick<ToolCallPart, 'id' | 'name'>): boolean {
  return RANDOM.test(id.replaceAll(name, ''))
}

/**
 * The anchor of a tool call, under which signed parts are stored. Without a random id, it depends on the whole
 * call and on everything before its turn, because other conversations have calls with the same id.
 */
export function callAnchor(call: Omit<ToolCallPart, 'kind'>, context: () => string): string {
  if (hasRandomId(call)) return `call ${call.id}`
  const said = JSON.stringify([context(), call.id, call.name, inputEssence(call.input)])
  return `call ${createHash('sha256').update(said).digest('base64url')}`
}

/**
 * A call's input in a form that does not depend on how its client writes JSON. Input beyond the limits of JSON
 * stays as it is, because a deep one would exhaust the stack.
 */
function inputEssence(text: string): unknown {
  const input = inputOrEmpty(text).trim()
  try {
    scanObject(Buffer.from(input))
  } catch {
    return text
  }
  return JSON.parse(input, (_, value: unknown) => {
    const record = asRecord(value)
    return record ? Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)) : value
  })
}

/**
 * Anchor of a reply without tool calls, under which signed parts are stored. It depends on the text and on
 * everything before it, because the same text in another conversation is a different reply. Undefined if the
 * reply has no text.
 */
export function textAnchor(context: string, text: string): string | undefined {
  const said = text.trim()
  if (said === '') return undefined
  return `text ${createHash('sha256').update(context).update('\n').update(said).digest('base64url')}`
}

/**
 * Digests of the conversation before each turn, and of the whole conversation. Thoughts and cache marks are
 * not included.
 */
export function digestsByTurn({ system, turns }: Pick<Conversation, 'system' | 'turns'>): readonly string[] {
  const hash = createHash('sha256').update(JSON.stringify(system.map(({ text }) => text)))
  const contexts = [hash.copy().digest('base64url')]
  for (const turn of turns) {
    hash.update(JSON.stringify(essenceOf(turn)))
    contexts.push(hash.copy().digest('base64url'))
  }
  return contexts
}

/** All texts of the parts, joined without a separator. */
export function textOf({ parts }: { readonly parts: readonly Part[] }): string {
  return parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')
}

function essenceOf(turn: Turn): unknown {
  return [turn.role, textOf(turn).trim(), turn.parts.flatMap(essenceOfPart)]
}

/**
 * Describes a part for the digest of its turn. A text is left out, because clients split and join texts;
 * `essenceOf` includes all texts of a turn as one.
 */
function essenceOfPart(part: Part): unknown[] {
  switch (part.kind) {
    case 'tool-call':
      return [part.id]
    case 'tool-result':
      return [part.callId, textOf(part), part.parts.flatMap(essenceOfPart)]
    case 'media':
      return [sampleOf(part)]
    case 'text':
    case 'thinking':
    case 'search':
    case 'opaque':
      return []
  }
}

function sampleOf({ source }: MediaPart): unknown {
  const data = source.kind === 'inline' ? source.data : source.url
  return [data.length, data.slice(0, MEDIA_SAMPLE), data.slice(-MEDIA_SAMPLE)]
}

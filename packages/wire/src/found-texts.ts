import { CHAT_ANSWER } from './chat/shape.ts'
import { GEMINI_ANSWER } from './gemini/shape.ts'
import type { ValueKind } from './files-in-values.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import { MESSAGES_ANSWER, MESSAGES_EVENT } from './messages/shape.ts'
import type { ServedProtocol } from './protocols.ts'
import { type AnswerTexts, answerTexts } from './text-finder.ts'
import { RERANK_ANSWER } from './rerank/shape.ts'
import { RESPONSES_ANSWER, RESPONSES_EVENT } from './responses/shape.ts'
import type { Shape } from './shape/define-shape.ts'
import type { FileFacts } from './text-file.ts'

/** Which part of a call a text belongs to. */
export type TextPlace = 'input' | 'output' | 'tool_arguments' | 'tool_results'

/** A text that guards check, in a request or response of any protocol. */
export interface FoundText {
  /** Offsets of the JSON string, including its quotes. */
  readonly from: number
  readonly to: number
  readonly place: TextPlace
  /** Whether the text is reasoning that is covered by a signature, so that it must not be changed. */
  readonly isSigned: boolean
  /** Whether the text is itself JSON: the arguments of a tool. Guards then check the strings in it. */
  readonly isJson: boolean
  /** Whether this is not a string but a number, in the arguments or the result of a tool. */
  readonly isNumber: boolean
  /** Whether the text is a name in a schema, or the name of a variable. */
  readonly isName: boolean
  /** Whether the text is inside an object whose keys users or models choose. */
  readonly isData: boolean
  /** Whether the provider wrote the text. Such a text never arrives in pieces. */
  readonly isWhole: boolean
  /** How the value is read; `text` in answers. */
  readonly kind: ValueKind
  /** What is stated about the file that the value may be; undefined if nothing is. */
  readonly file?: FileFacts
  /** The path from the root of an event to the text. Empty for a whole answer. */
  readonly way: readonly PathStep[]
}

/** A step of the path to a text: a member of an object or an element of a list. */
export interface PathStep {
  /** Name of the member; undefined for an element of a list. */
  readonly name: string | undefined
  /** The object with the member, or the list with the element. */
  readonly of: Node
}

/**
 * Offsets of a value that repeats texts token by token, and the JSON that replaces the value if a text is
 * changed.
 */
export type RepeatingSpan = readonly [from: number, to: number, instead: string]

/** Facts that are needed to find the texts of an answer, but that the answer does not state. */
export interface AnswerContext {
  /** The protocol of the client, in which the answer is written. */
  readonly dialect: ServedProtocol
  /** Whether reasoning is signed by its provider, so that it cannot be changed. */
  readonly signsReasoning: boolean
}

/** Replacement of a part of the bytes by another JSON text. */
export interface TextChange {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** The shapes of answers, and of their events. */
const SHAPES: Readonly<Record<ServedProtocol, { readonly whole: Shape; readonly event: Shape }>> = {
  chat: { whole: CHAT_ANSWER, event: CHAT_ANSWER },
  gemini: { whole: GEMINI_ANSWER, event: GEMINI_ANSWER },
  messages: { whole: MESSAGES_ANSWER, event: MESSAGES_EVENT },
  rerank: { whole: RERANK_ANSWER, event: RERANK_ANSWER },
  responses: { whole: RESPONSES_ANSWER, event: RESPONSES_EVENT },
}
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Finds the texts of a whole answer, as `answerTexts` does. */
export function findAnswerTexts(scan: ScannedObject, context: AnswerContext): AnswerTexts {
  return answerTexts(scan, SHAPES[context.dialect].whole, readingOf(context))
}

/** Finds the texts of an event of a streamed answer, each with its path from the root. */
export function textsOfEvent(scan: ScannedObject, context: AnswerContext): AnswerTexts {
  return answerTexts(scan, SHAPES[context.dialect].event, { ...readingOf(context), hasWays: true })
}

function readingOf({ dialect, signsReasoning }: AnswerContext): Parameters<typeof answerTexts>[2] {
  return dialect === 'gemini' ? { signsReasoning, emptyTokens: '{}' } : { signsReasoning }
}

/** Decodes the JSON string between two offsets; of a number it returns the digits. */
export function decodeStringAt(bytes: Buffer, from: number, to: number): string {
  if (bytes[from] !== QUOTE) return bytes.toString('utf8', from, to)
  const escape = bytes.indexOf(BACKSLASH, from)
  if (escape === -1 || escape >= to) return bytes.toString('utf8', from + 1, to - 1)
  return JSON.parse(bytes.toString('utf8', from, to)) as string
}

/**
 * Applies changes to the bytes. The changes must be in order and must not overlap. All other bytes stay
 * unchanged.
 */
export function applyTextChanges(bytes: Buffer, changes: readonly TextChange[]): Buffer {
  if (changes.length === 0) return bytes
  const parts: Buffer[] = []
  let at = 0
  for (const { from, to, text } of changes) {
    parts.push(bytes.subarray(at, from), Buffer.from(text))
    at = to
  }
  parts.push(bytes.subarray(at))
  return Buffer.concat(parts)
}

/** The text of a member if it is a string, otherwise undefined. */
export function stringMember(scan: ScannedObject, object: Node, name: string): string | undefined {
  const value = scan.memberOf(object, name)
  if (value === undefined || scan.bytes[scan.startOf(value)] !== QUOTE) return undefined
  return decodeStringAt(scan.bytes, scan.startOf(value), scan.endOf(value))
}

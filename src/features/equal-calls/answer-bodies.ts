import { type AnswerForms, type Json, parseEvents } from '@sluice/wire/answer-forms'
import { ANSWER_FORMS } from '@sluice/wire/answer-forms-by-name'
import { withUsageChunk } from '@sluice/wire/chat'
import { applyEdits, replaceMemberValue } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import { parseRecord } from '@sluice/wire/json/record'
import { eventNameOfFrame, frameData } from '@sluice/wire/sse/frame-splitter'
import { newResponseId } from '../../call/response-id.ts'
import type { AnswerStorageRules } from '../../call/dialects/answer-storage-rules.ts'

/**
 * Form in which a client gets an answer: a whole body, server-sent events, or one JSON array of the events.
 */
export type BodyForm = 'whole' | 'events' | 'array'

/** An answer in the form in which one client got it. */
export interface ProducedBody {
  readonly keeping: AnswerStorageRules
  readonly form: BodyForm
  readonly includeUsage: boolean
  readonly bytes: Buffer
  /** The usage that was charged, in the format of chat streams. */
  readonly usage: object | undefined
}

/** The form of an answer that a client asks for. */
export interface RequestedBodyForm {
  readonly form: BodyForm
  readonly includeUsage: boolean
  /** Members of the client's request that its answer repeats and equal requests may lack, as JSON texts. */
  readonly repeated?: ReadonlyMap<string, string>
}

/** Content types of the forms in which clients get answers. */
export const CONTENT_TYPES: Readonly<Record<BodyForm, string>> = {
  whole: 'application/json',
  events: 'text/event-stream',
  array: 'application/json',
}

/** Whether an answer that was given in one form can be sent, unchanged, to a client that wants another. */
export function canReuseAnswerBody(
  given: Omit<ProducedBody, 'bytes' | 'usage'>,
  wanted: RequestedBodyForm,
): boolean {
  if (given.keeping.hasOwnIds) return false
  return given.form === wanted.form && (given.form === 'whole' || given.includeUsage === wanted.includeUsage)
}

/** Converts an answer to the form that a client wants; undefined if it cannot be converted. */
export function convertBody(given: ProducedBody, wanted: RequestedBodyForm): Buffer | undefined {
  const text = given.bytes.toString()
  const converted =
    given.form === wanted.form ? sameForm(given, wanted, text) : otherForm(given, wanted, text)
  if (converted === undefined) return undefined
  if (!given.keeping.hasOwnIds) return Buffer.from(converted)
  const id = wholeOf(given, text)?.['id']
  const renamed =
    typeof id === 'string' && id !== ''
      ? converted.replaceAll(JSON.stringify(id), JSON.stringify(newResponseId(id.length)))
      : converted
  return Buffer.from(wanted.repeated ? withRepeated(renamed, wanted.form, wanted.repeated) : renamed)
}

const BLANK_LINE = /(\r\n\r\n|\n\n|\r\r)/

/** Writes the repeated members into a response, or into each event of its stream that contains it. */
function withRepeated(text: string, form: BodyForm, repeated: ReadonlyMap<string, string>): string {
  if (form === 'whole') return withMembers(text, repeated)
  return text
    .split(BLANK_LINE)
    .map((frame) => {
      const data = frame.includes('"response"') && frameData(frame)
      if (!data || !parseRecord(data)) return frame
      const scan = scanObject(Buffer.from(data), RESPONSE_LIMITS)
      const node = scan.span('response')?.node
      if (node === undefined || scan.kindOf(node) !== 'object') return frame
      const event = replaceMemberValue(scan, scan.root, node, withMembers(scan.textOf(node), repeated))
      const name = eventNameOfFrame(frame)
      return `${name === undefined ? '' : `event: ${name}\n`}data: ${event.replaceAll(/[\r\n]/g, ' ')}`
    })
    .join('')
}

/** Replaces those of these members that an object has. */
function withMembers(text: string, repeated: ReadonlyMap<string, string>): string {
  const bytes = Buffer.from(text)
  const scan = scanObject(bytes, RESPONSE_LIMITS)
  const replace = new Map([...repeated].filter(([name]) => scan.has(name)))
  return applyEdits(bytes, scan, { remove: [], replace }).toString()
}

/**
 * Whether an answer may be kept: it is complete and not a refusal. An answer of an endpoint without streams
 * is complete if it is a JSON object without an error.
 */
export function isKeepableAnswer(given: ProducedBody): boolean {
  const text = given.bytes.toString()
  const forms = formsOf(given.keeping)
  if (forms) {
    const whole = wholeOf(given, text)
    return whole !== undefined && forms.isComplete(whole)
  }
  const whole = parseRecord(text)
  return whole !== undefined && (whole['error'] === undefined || whole['error'] === null)
}

function sameForm(
  { keeping, form, includeUsage: hasUsage, usage }: ProducedBody,
  { includeUsage }: RequestedBodyForm,
  text: string,
): string {
  if (form === 'whole' || !keeping.hasUsageOption || hasUsage === includeUsage) return text
  return withUsageChunk(text, includeUsage, usage)
}

function otherForm(
  given: ProducedBody,
  { form, includeUsage }: RequestedBodyForm,
  text: string,
): string | undefined {
  const whole = wholeOf(given, text)
  if (!whole) return undefined
  if (form === 'whole') return JSON.stringify(whole)
  if (form === 'array') return JSON.stringify([whole])
  return formsOf(given.keeping)?.frames(whole, { includeUsage })
}

function formsOf({ forms }: AnswerStorageRules): AnswerForms | undefined {
  return forms && ANSWER_FORMS[forms]
}

function wholeOf({ keeping, form, usage }: ProducedBody, text: string): Json | undefined {
  if (form === 'whole') return parseRecord(text)
  const events = form === 'array' ? elementsOf(text) : parseEvents(text)
  const whole = formsOf(keeping)?.whole(events)
  return whole && keeping.hasUsageOption && whole['usage'] === undefined && usage
    ? { ...whole, usage }
    : whole
}

function elementsOf(text: string): { readonly name: undefined; readonly data: Json }[] {
  const { elements } = parseRecord(`{"elements":${text}}`) ?? {}
  return Array.isArray(elements) ? elements.map((data: Json) => ({ name: undefined, data })) : []
}

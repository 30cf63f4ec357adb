import { type AnswerForms, type Json, parseEvents } from '@sluice/wire/answer-forms'
import { ANSWER_FORMS } from '@sluice/wire/answer-forms-by-name'
import { withUsageChunk } from '@sluice/wire/chat'
import { parseRecord } from '@sluice/wire/json/record'
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
  return Buffer.from(
    typeof id === 'string' && id !== ''
      ? converted.replaceAll(JSON.stringify(id), JSON.stringify(newResponseId(id.length)))
      : converted,
  )
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

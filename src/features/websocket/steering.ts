import { applyEdits } from '@sluice/wire/json/json-edit'
import { asRecord, parseRecord, stringOrEmpty } from '@sluice/wire/json/record'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { type Frame, inputTexts, readFrame, readTurnFrame, type TurnFrame } from './turn-frame.ts'

/** A frame that gives further input to the response that is running. */
export interface SteerFrame extends Frame {
  /** Id of the response, as the client knows it. */
  readonly previousId: string
  /** JSON texts of the items. */
  readonly items: readonly string[]
  /** What the client was told of it: that it was taken, or that it was not. */
  told: 'taken' | 'not taken' | undefined
  /** Whether the provider got a later steer of the same response, whose turn follows from it. */
  isReplaced: boolean
}

/** Why a response cannot be steered. */
export class SteerFailure extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.name = 'SteerFailure'
    this.code = code
  }
}

const MEMBERS: ReadonlySet<string> = new Set(['type', 'previous_response_id', 'input'])

/** Reads a frame that steers. Throws `SteerFailure` for one that is not valid. */
export function readSteer(frame: Frame): SteerFrame {
  const { scan } = frame
  const other = scan.entries(scan.root).find(({ key }) => !MEMBERS.has(key))
  if (other)
    throw new SteerFailure('invalid_input', `response.steer has no member "${other.key.slice(0, 64)}"`)
  const previousId = scan.value('previous_response_id')
  if (typeof previousId !== 'string')
    throw new SteerFailure('invalid_input', 'expected the id of a running response in "previous_response_id"')
  const items = inputOf(scan)
  if (items.length === 0) throw new SteerFailure('invalid_input', 'expected a text or messages in "input"')
  return { ...frame, previousId, items, told: undefined, isReplaced: false }
}

function inputOf(scan: ScannedObject): readonly string[] {
  const input = scan.span('input')
  const isList = input && scan.kindOf(input.node) === 'array'
  if (isList && !scan.elements(input.node).every((item) => isOfUser(scan.parse(item))))
    throw new SteerFailure('invalid_input', 'expected messages of the user only in "input"')
  try {
    return inputTexts(scan)
  } catch {
    throw new SteerFailure('invalid_input', 'expected a text or messages in "input"')
  }
}

function isOfUser(item: unknown): boolean {
  if (typeof item !== 'object' || item === null) return false
  const { type = 'message', role } = item as { readonly type?: unknown; readonly role?: unknown }
  return type === 'message' && role === 'user'
}

/**
 * The turn that a steered one is followed by: the same request with the further input. Throws `SteerFailure` for more than
 * a request may have.
 */
export function successorFrame({ scan }: TurnFrame, steers: readonly Pick<SteerFrame, 'items'>[]): TurnFrame {
  const items = steers.flatMap((steer) => steer.items)
  const bytes = applyEdits(scan.bytes, scan, {
    remove: ['previous_response_id', 'generate'],
    replace: new Map([['input', `[${items.join(',')}]`]]),
  })
  try {
    return readTurnFrame(readFrame(bytes))
  } catch (error) {
    throw new SteerFailure('invalid_input', (error as Error).message)
  }
}

/** The event for a frame that steers nothing. */
export function steerFailedEvent(
  { scan }: Frame,
  { code, message }: Pick<SteerFailure, 'code' | 'message'>,
): string {
  const shown = JSON.stringify({ type: 'response.steer.failed', error: { code, message } }).slice(0, -1)
  const input = scan.span('input')
  return `${shown}${input ? `,"input":${scan.textOf(input.node)}` : ''}}`
}

/** The failure of a steer whose turn was refused, from the body of the refusal. */
export function failureOfRefusal(body: Buffer): { readonly code: string; readonly message: string } {
  const error = asRecord(parseRecord(body.toString())?.['error'])
  const code = stringOrEmpty(error?.['code'])
  const message = stringOrEmpty(error?.['message'])
  return { code: code || 'api_error', message: message || 'the turn was refused' }
}

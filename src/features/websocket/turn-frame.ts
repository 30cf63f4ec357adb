import { applyEdits } from '@sluice/wire/json/json-edit'
import { scanObject } from '@sluice/wire/json/json-scan'
import { KnownMemberNames } from '@sluice/wire/json/known-names'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { GatewayError } from '../../errors.ts'

/** Members that a frame has beside those of a request. */
const FRAME_ONLY = ['type', 'stream_id', 'generate'] as const
/** Members whose values the gateway sets itself. */
const SET_HERE = ['stream', 'background', 'previous_response_id', 'input', 'instructions'] as const
const NAMES = new KnownMemberNames([...FRAME_ONLY, ...SET_HERE])
const LANE_NAME = /^[\w.-]{1,256}$/
const TYPES = ['response.create', 'response.processed', 'response.steer'] as const

/** A message of a client: one JSON object. */
export interface Frame {
  readonly scan: ScannedObject
  /** Name of the lane; undefined for the lane without a name. */
  readonly lane: string | undefined
}

/** Reads a message. Throws `invalid_json`, or `invalid_request` for a name in another spelling. */
export function readFrame(bytes: Buffer): Frame {
  const scan = scanObject(bytes)
  NAMES.check(scan)
  return { scan, lane: laneOf(scan) }
}

/** The type of a frame. Throws `invalid_request` for one that is unknown. */
export function frameType({ scan }: Frame): (typeof TYPES)[number] {
  const given = scan.value('type')
  const type = TYPES.find((known) => known === given)
  if (type) return type
  throw new GatewayError('invalid_request', `Invalid 'type': expected ${TYPES.join(', ')}.`)
}

/** A frame that asks for a response. */
export interface TurnFrame extends Frame {
  readonly previousId: string | undefined
  /** Whether a response is generated, and not only the state for a later one. */
  readonly generates: boolean
  /** JSON texts of the items of the input, with commas between them. */
  readonly items: string
  /** Number of these items. */
  readonly itemCount: number
}

/** Reads a frame that asks for a response. Only what concerns the socket is checked; the call checks the rest. */
export function readTurnFrame(frame: Frame): TurnFrame {
  const { scan } = frame
  const generate = scan.value('generate') ?? true
  if (typeof generate !== 'boolean')
    throw new GatewayError('invalid_request', `Invalid 'generate': expected a boolean.`)
  if (scan.value('background') === true)
    throw new GatewayError(
      'invalid_request',
      `Invalid 'background': expected false, got true: responses in the background are made by POST.`,
    )
  const previousId = scan.value('previous_response_id')
  const items = inputTexts(scan)
  return {
    ...frame,
    generates: generate,
    previousId: typeof previousId === 'string' ? previousId : undefined,
    items: items.join(','),
    itemCount: items.length,
  }
}

/** The body of the request that a frame stands for, with other values for some of its members. */
export function turnBody(
  { scan }: TurnFrame,
  replaced: ReadonlyMap<string, string>,
  dropsPrevious: boolean,
): Buffer {
  const background = scan.kind('background')
  const remove = [
    ...FRAME_ONLY,
    ...(background === 'false' || background === 'null' ? ['background'] : []),
    ...(dropsPrevious ? ['previous_response_id'] : []),
  ]
  return applyEdits(scan.bytes, scan, { remove, replace: new Map([...replaced, ['stream', 'true']]) })
}

function laneOf(scan: ScannedObject): string | undefined {
  const given = scan.value('stream_id') ?? undefined
  if (given === undefined) return undefined
  if (typeof given === 'string' && LANE_NAME.test(given)) return given
  throw new GatewayError(
    'invalid_stream_id',
    `Invalid 'stream_id': expected 1 to 256 letters, digits, '_', '-' and '.'.`,
  )
}

/** JSON texts of the items of the input. Throws `invalid_request` for an input that is neither a text nor items. */
export function inputTexts(scan: ScannedObject): string[] {
  const input = scan.span('input')
  if (!input) return []
  const kind = scan.kindOf(input.node)
  if (kind === 'null') return []
  if (kind === 'array') return scan.elements(input.node).map((item) => scan.textOf(item))
  if (kind === 'string' && scan.value('input') !== '') return [messageOf(scan.textOf(input.node))]
  throw new GatewayError(
    'invalid_request',
    `Invalid 'input': expected a non-empty string or an array of items.`,
  )
}

/** A message of the user with a text, which is given as JSON. */
function messageOf(text: string): string {
  return `{"type":"message","role":"user","content":[{"type":"input_text","text":${text}}]}`
}

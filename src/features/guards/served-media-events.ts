import { type MediaAnswerKind, type MediaEventText, mediaEventTexts } from '@sluice/wire/media-texts'
import { decodeStringAt, applyTextChanges } from '@sluice/wire/found-texts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { frameData, FrameSplitter, MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import { type AnswerCheck, outputText, servedTexts, unlessBlocked } from './answer-check.ts'
import { frameWithData, scanEventData } from './event-frames.ts'
import { transcriptDeltaEvent } from './guarded-media-events.ts'

/**
 * Has services check a whole stream of events of images or of a transcript. Resolves to the events to go on with;
 * undefined if a service blocks a stream of images.
 */
export async function servedMediaEvents(
  bytes: Buffer,
  about: MediaAnswerKind,
  check: AnswerCheck,
): Promise<Buffer | undefined> {
  const frames = framesOf(bytes)
  return about === 'transcript'
    ? servedTranscript(bytes, frames, check)
    : servedPictures(bytes, frames, check)
}

/** A transcript that a service has changed is sent in a single event, one that a service has blocked is empty. */
async function servedTranscript(
  bytes: Buffer,
  frames: readonly MediaFrame[],
  check: AnswerCheck,
): Promise<Buffer> {
  const whole = frames.find(({ isLast }) => isLast)?.text
  const said = frames.map(({ span, text }) => (span?.piece === 'text' ? text : '')).join('')
  const given = whole ?? said
  const [served] = (await unlessBlocked(servedTexts(check, [outputText(given)]))) ?? []
  if (served === given && (said === '' || said === given)) return bytes
  // Events with a text that services have not seen or have changed are replaced.
  const text = served ?? ''
  const last = frames.findLast(({ isLast }) => isLast)
  const done =
    served === undefined || !last
      ? { type: 'transcript.text.done', text }
      : { ...(JSON.parse(last.scan.bytes.toString()) as object), text }
  const first = text === '' ? '' : transcriptDeltaEvent(text)
  return Buffer.from(`${first}${frameWithData(last?.frame ?? '', JSON.stringify(without(done)))}`)
}

async function servedPictures(
  bytes: Buffer,
  frames: readonly MediaFrame[],
  check: AnswerCheck,
): Promise<Buffer | undefined> {
  const given = frames.map(({ text }) => outputText(text))
  const served = await unlessBlocked(servedTexts(check, given))
  if (!served) return undefined
  if (frames.every(({ text }, at) => text === served[at])) return bytes
  const written = frames.map(({ frame, scan, span, text }, at) => {
    const next = served[at] ?? ''
    if (!span || next === text) return frame
    return frameWithData(
      frame,
      applyTextChanges(scan.bytes, [{ ...span, text: JSON.stringify(next) }]).toString(),
    )
  })
  return Buffer.from(written.join(''))
}

interface MediaFrame {
  readonly frame: string
  readonly scan: ScannedObject
  /** The position of the text in the event; undefined if the event has no text. */
  readonly span: MediaEventText | undefined
  readonly text: string
  readonly isLast: boolean
}

function framesOf(bytes: Buffer): MediaFrame[] {
  const splitter = new FrameSplitter(MAX_EVENT_BYTES)
  const taken = splitter.take(bytes)
  const found: MediaFrame[] = []
  if (!taken) return found
  for (let at = 0; ; ) {
    const end = splitter.next(at)
    if (end < 0) break
    const frame = taken.subarray(at, end).toString()
    at = end
    const data = frameData(frame)
    const scan = data === undefined ? undefined : scanEventData(data)
    if (!scan) continue
    const { texts, isLast } = mediaEventTexts(scan)
    const [span] = texts
    found.push({
      frame,
      scan,
      span,
      text: span ? decodeStringAt(scan.bytes, span.from, span.to) : '',
      isLast,
    })
  }
  return found
}

/** Returns the event without `logprobs`, the list that repeats its text token by token. */
function without(event: object): object {
  return Object.fromEntries(Object.entries(event).filter(([name]) => name !== 'logprobs'))
}

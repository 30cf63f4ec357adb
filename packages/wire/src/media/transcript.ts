import type { Usage } from '../usage.ts'
import { parseRecord } from '../json/record.ts'
import { isError } from '../reply-facts.ts'
import { readMediaUsage, secondsIn } from './usage.ts'

/** Facts of a whole transcript on which its cost depends. */
export interface TranscriptFacts {
  readonly isValid: boolean
  readonly isError: boolean
  readonly usage: Usage | undefined
  /** Seconds of the recording as the response reports them; 0 if it does not. */
  readonly seconds: number
  /** Second at which the last subtitle ends; the recording is at least that long. */
  readonly lastCue: number
  /** The text, for counting tokens. */
  readonly text: string
}

/** Time at the end of a cue in SubRip and WebVTT: `00:01:02,345`, `01:02.345`. */
const CUE_END = /-->[ \t]*(?:(\d{1,3}):)?(\d{2}):(\d{2})[.,](\d{3})/g

/** Reads a transcript in JSON: `json`, `verbose_json` or `diarized_json`. */
export function jsonTranscript(body: string): TranscriptFacts {
  const reply = parseRecord(body)
  const text = reply?.['text']
  return {
    isValid: typeof text === 'string' && !isError(reply?.['error']),
    isError: isError(reply?.['error']),
    usage: readMediaUsage(reply?.['usage'], 'text'),
    seconds: secondsIn(reply?.['duration']),
    lastCue: 0,
    text: typeof text === 'string' ? text : '',
  }
}

/** Reads a transcript as text: plain, SubRip or WebVTT. */
export function plainTranscript(body: string): TranscriptFacts {
  let lastCue = 0
  for (const [, hours = '0', minutes, rest, thousandths] of body.matchAll(CUE_END)) {
    const end = Number(hours) * 3600 + Number(minutes) * 60 + Number(rest) + Number(thousandths) / 1000
    lastCue = Math.max(lastCue, secondsIn(end))
  }
  return { isValid: true, isError: false, usage: undefined, seconds: 0, lastCue, text: body }
}

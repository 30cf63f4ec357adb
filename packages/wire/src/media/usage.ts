import { NO_USAGE, type Usage } from '../usage.ts'
import { readInclusiveUsage } from '../inclusive-usage.ts'
import { asRecord } from '../json/record.ts'
import { countsOf, withCredibleTotal } from '../reported-usage.ts'
import { type Counts, count, maxCount } from '../token-count.ts'

const NONE: Counts = {}

/** Kind of an endpoint's output, used if its usage does not report the kind. */
export type OutputModality = 'text' | 'audio' | 'image'

/**
 * Reads the usage of a response about images or audio: its tokens by modality, or its seconds; undefined if
 * it reports neither. Transcriptions write `input_token_details` in the singular.
 */
export function readMediaUsage(value: unknown, output: OutputModality): Usage | undefined {
  const usage = asRecord(value)
  if (!usage) return undefined
  const seconds = Math.max(secondsIn(usage['seconds']), secondsIn(usage['prompt_audio_seconds']))
  const inputDetails = details(usage, 'input_tokens_details', 'input_token_details', 'prompt_tokens_details')
  const outputDetails = details(usage, 'output_tokens_details', 'output_token_details')
  const reported = readInclusiveUsage({
    ...usage,
    input_tokens_details: inputDetails,
    output_tokens_details: outputDetails,
  })
  const tokens = reported && withCredibleTotal(reported)
  if (!tokens || tokens.outputIsUnknown || tokens.input + tokens.cacheRead + tokens.output === 0)
    return seconds > 0 ? { ...NO_USAGE, seconds } : undefined
  return {
    ...countsOf(tokens),
    seconds,
    ...outputModalities(tokens.output, outputDetails, output),
  }
}

function outputModalities(
  tokens: number,
  stated: Counts,
  output: OutputModality,
): Pick<Usage, 'audioOutput' | 'imageOutput'> {
  const text = maxCount(stated, 'text_tokens', 'reasoning_tokens')
  const audio = count(stated, 'audio_tokens')
  const image = count(stated, 'image_tokens')
  if (text + audio + image === 0)
    return { audioOutput: output === 'audio' ? tokens : 0, imageOutput: output === 'image' ? tokens : 0 }
  const audioOutput = Math.min(audio, tokens)
  return { audioOutput, imageOutput: Math.min(image, tokens - audioOutput) }
}

function details(usage: Counts, ...names: readonly string[]): Counts {
  for (const name of names) {
    const found = asRecord(usage[name])
    if (found) return found
  }
  return NONE
}

/** Maximum plausible duration of one recording in seconds: a day. */
const MAX_SECONDS = 86_400

/** Whole seconds, rounded up as providers do; 0 for an implausible duration. */
export function secondsIn(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= MAX_SECONDS ? Math.ceil(value) : 0
}

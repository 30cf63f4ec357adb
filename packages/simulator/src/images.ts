import { type Fields, asNumber, asString } from './fields.ts'
import { drawPng } from './png.ts'
import { Refusal } from './refusal.ts'
import { estimateTokens } from './tokens.ts'
import type { Reply, ReplyTimeAndIds } from './upstream.ts'

const MAX_IMAGES = 10
const MAX_SIDE = 256
/** Tokens that a square image costs, by quality. */
const TOKENS = new Map([
  ['low', 272],
  ['medium', 1056],
  ['high', 4160],
])
const TOKENS_OF_AUTO = 1056
const TOKENS_OF_PARTIAL = 100

/** Replies with images for a prompt or as variations: complete ones, or events with partial images. */
export function imagesReply(body: Fields, stamp: ReplyTimeAndIds, path: string): Reply {
  const prompt = path === '/images/variations' ? 'a variation' : asString(body.prompt)
  if (prompt === '') throw new Refusal('malformed', 'prompt: a text is required')
  const count = asNumber(body.n) ?? 1
  if (!Number.isInteger(count) || count < 1 || count > MAX_IMAGES)
    throw new Refusal('malformed', `n: expected an integer from 1 to ${MAX_IMAGES}`)
  const size = /^\d{2,4}x\d{2,4}$/.test(asString(body.size)) ? asString(body.size) : '1024x1024'
  const quality = TOKENS.has(asString(body.quality)) ? asString(body.quality) : 'medium'
  const [width = MAX_SIDE, height = MAX_SIDE] = size
    .split('x')
    .map((side) => Math.min(Number(side), MAX_SIDE))
  const draw = (index: number): string => drawPng(width, height, `${prompt} ${index}`).toString('base64')
  const form = { size, quality, background: 'opaque', output_format: 'png' }
  const partials = asNumber(body.partial_images) ?? 0
  const usage = usageOf(prompt, count, TOKENS.get(quality) ?? TOKENS_OF_AUTO, partials)
  if (body.stream !== true && body.stream !== 'true') {
    const data = Array.from({ length: count }, (_, index) => ({ b64_json: draw(index) }))
    return { kind: 'whole', body: { created: stamp.created, ...form, data, usage }, tokens: count }
  }
  const kind = path === '/images/edits' ? 'image_edit' : 'image_generation'
  const event = (type: string, more: object): { text: string; tokens: number } => {
    const data = { type: `${kind}.${type}`, created_at: stamp.created, ...form, ...more }
    return { text: `event: ${kind}.${type}\ndata: ${JSON.stringify(data)}\n\n`, tokens: 1 }
  }
  const partial = Array.from({ length: partials }, (_, index) =>
    event('partial_image', { b64_json: draw(index), partial_image_index: index }),
  )
  return { kind: 'stream', frames: [...partial, event('completed', { b64_json: draw(0), usage })] }
}

function usageOf(prompt: string, count: number, tokens: number, partials: number): object {
  const input = estimateTokens(prompt.length)
  const output = count * tokens + partials * TOKENS_OF_PARTIAL
  return {
    input_tokens: input,
    input_tokens_details: { text_tokens: input, image_tokens: 0 },
    output_tokens: output,
    total_tokens: input + output,
  }
}

import type { ProtocolName } from '@sluice/wire/protocols'
import { isOpenAiHost, isOpenRouter } from '@sluice/wire/upstream-settings'
import type { Channel } from '../../domain/records/channel.ts'
import type { AttemptRequest } from '../../call/request-stages.ts'
import type { CallAffinity } from './affinity.ts'

/** Whether the requests of a protocol can have a `prompt_cache_key`. */
const HAS_CACHE_KEY: Readonly<Record<ProtocolName, boolean>> = {
  chat: true,
  messages: false,
  responses: true,
  gemini: false,
  converse: false,
  rerank: false,
}

const NAME = '"prompt_cache_key"'
const CLOSE = '}'.charCodeAt(0)

/**
 * Returns the body with the session's `prompt_cache_key` added at its end, if the channel takes one. All
 * other bytes stay the same.
 */
export function withCacheKey(
  request: AttemptRequest,
  channel: Channel,
  affinity: CallAffinity,
): AttemptRequest['body'] {
  const { body, protocol } = request
  if (!HAS_CACHE_KEY[protocol] || !takesCacheKey(channel) || !Buffer.isBuffer(body)) return body
  const key = affinity.cacheKey
  if (key === undefined) return body
  const end = body.lastIndexOf(CLOSE)
  return Buffer.concat([body.subarray(0, end), Buffer.from(`,${NAME}:"${key}"`), body.subarray(end)])
}

const TAKES_CACHE_KEY = new WeakMap<Channel, boolean>()

/**
 * Whether a channel takes a `prompt_cache_key`. The result is remembered, because finding it requires parsing
 * the channel's URL.
 */
function takesCacheKey(channel: Channel): boolean {
  let takes = TAKES_CACHE_KEY.get(channel)
  if (takes === undefined) {
    const { allow, base_url: url, provider } = channel
    takes = allow.has('prompt_cache_key') || provider === 'azure' || isOpenAiHost(url) || isOpenRouter(url)
    TAKES_CACHE_KEY.set(channel, takes)
  }
  return takes
}

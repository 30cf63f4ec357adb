import type { Channel } from '../domain/channel.ts'

const LOOKS_LIKE_A_KEY = /\b(?:sk|pk|rk|gsk|xai|key)-[A-Za-z0-9_*-]{6,}|\bBearer\s+[^\s"',]+/gi

/** `text` of an upstream's without our keys for it and without its address. */
export function redact(text: string, channel: Channel): string {
  let result = text
  for (const key of channel.keys) if (key !== '') result = result.replaceAll(key, '[redacted]')
  const { host, hostname } = new URL(channel.baseUrl)
  for (const address of [channel.baseUrl, host, hostname]) result = result.replaceAll(address, '[upstream]')
  return result.replace(LOOKS_LIKE_A_KEY, '[redacted]')
}

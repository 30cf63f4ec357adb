import type { Channel } from '../domain/records/channel.ts'
import { VENDORS } from './vendors/vendors.ts'

/** Base URLs that a vendor serves besides the one in `VENDORS`. */
const OTHER_VALID_BASE_URLS: ReadonlySet<string> = new Set(['https://api.deepseek.com'])

/** Google's address for another dialect than its own, below its address for that. */
const GOOGLE_CHAT = {
  protocol: 'chat',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
} as const

/** The base URL that was probably meant, where a channel's is a known vendor's without its version. */
export function completeBaseUrl({
  base_url: baseUrl,
  protocol: protocols,
}: Pick<Channel, 'base_url' | 'protocol'>): string | undefined {
  if (OTHER_VALID_BASE_URLS.has(baseUrl)) return undefined
  return [...VENDORS, GOOGLE_CHAT].find(
    (known) => protocols.includes(known.protocol) && known.baseUrl.startsWith(`${baseUrl}/`),
  )?.baseUrl
}

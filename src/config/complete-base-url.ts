import type { Channel } from '../domain/channel.ts'
import { VENDORS } from './vendors/vendors.ts'

/** Paths at which a vendor answers besides the one that it is known by. */
const OTHER_VALID_BASE_URLS: ReadonlySet<string> = new Set(['https://api.deepseek.com'])

/**
 * The base URL that a channel's most likely should have been, where it is a known vendor's without its
 * version.
 */
export function completeBaseUrl({
  baseUrl,
  protocol,
}: Pick<Channel, 'baseUrl' | 'protocol'>): string | undefined {
  if (OTHER_VALID_BASE_URLS.has(baseUrl)) return undefined
  return VENDORS.find((vendor) => vendor.protocol === protocol && vendor.baseUrl.startsWith(`${baseUrl}/`))
    ?.baseUrl
}

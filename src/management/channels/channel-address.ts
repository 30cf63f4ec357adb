import { withoutTrailing } from '../../domain/without-trailing.ts'
import type { ChannelType } from './channel-types.ts'

/** A segment of a path that names a version: `v1`, `v1beta`. */
const VERSION = /\/v\d+(?:(?:alpha|beta)\d*)?(?=\/|$)/i

/**
 * The address up to and including the version that a bare one stands for. One that has a version, or what is
 * no address at all, stays as it is; an empty one is the vendor's own.
 */
export function withVersion(given: string, { defaultAddress: address, version }: ChannelType): string {
  const bare = withoutTrailing(given.trim() || address, '/')
  const url = URL.canParse(bare) ? new URL(bare) : undefined
  const isPlain = url !== undefined && !/[?#\s\\]/.test(bare)
  return isPlain && !VERSION.test(url.pathname) ? bare + version : bare
}

/** The bare address of one up to and including the version. */
export function withoutVersion(baseUrl: string, type: ChannelType | undefined): string {
  const version = type?.version || '/v1'
  return baseUrl.endsWith(version) ? baseUrl.slice(0, -version.length) : baseUrl
}

import { withoutTrailing } from '../../domain/without-trailing.ts'
import type { ChannelType } from './channel-types.ts'

/** A path segment that is a version: `v1`, `v1beta`. */
const VERSION = /\/v\d+(?:(?:alpha|beta)\d*)?(?=\/|$)/i

/**
 * Adds the type's version to an address without one. An address with a version, or invalid text, is returned
 * unchanged; an empty one means the type's default address.
 */
export function withVersion(given: string, { defaultAddress, version }: ChannelType): string {
  const bare = withoutTrailing(given.trim() || defaultAddress, '/')
  const url = URL.canParse(bare) ? new URL(bare) : undefined
  const isPlain = url !== undefined && !/[?#\s\\]/.test(bare)
  return isPlain && !VERSION.test(url.pathname) ? bare + version : bare
}

/** Removes the version from a base URL. */
export function withoutVersion(baseUrl: string, type: ChannelType | undefined): string {
  const version = type?.version || '/v1'
  return baseUrl.endsWith(version) ? baseUrl.slice(0, -version.length) : baseUrl
}

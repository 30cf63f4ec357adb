import type { McpVersion } from '../../domain/mcp.ts'
import { type Fields, foreignMeta, gatewayInfo, META, STATELESS } from './protocol.ts'
import type { ServerReply } from './server-connection.ts'

/** A result in the revision of the client. */
export function convertedResult(
  { result = {}, version: given }: ServerReply,
  version: McpVersion,
  method: string,
): Fields {
  // What one API key may read, another may not.
  const isRead = method === 'resources/read'
  const { ttlMs, cacheScope: _, resultType, ...others } = result
  // Results of older revisions have no types, so that a type in them means nothing.
  const rest = given === STATELESS && resultType !== undefined ? { ...others, resultType } : others
  const own = isRead ? { ...rest, ttlMs: typeof ttlMs === 'number' ? ttlMs : 0, cacheScope: 'private' } : rest
  return forClient(version, own)
}

/** A result with the members that its revision has. */
export function forClient(version: McpVersion, result: Fields): Fields {
  const { _meta: meta, resultType = 'complete', ttlMs, cacheScope, ...rest } = result
  const foreign = foreignMeta(meta)
  if (version === STATELESS)
    return {
      ...rest,
      resultType,
      ...(ttlMs !== undefined && { ttlMs, cacheScope }),
      _meta: { ...foreign, [META.serverInfo]: gatewayInfo() },
    }
  return { ...rest, ...(Object.keys(foreign).length > 0 && { _meta: foreign }) }
}

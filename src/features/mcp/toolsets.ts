import type { Caller } from '../../accounts/authentication/caller.ts'
import { matchesWildcard } from '../../domain/matches-wildcard.ts'
import { type McpSettings, type McpToolset, splitPattern } from '../../domain/mcp.ts'

/** What a caller may use. */
export interface ToolAccess {
  /** Whether a tool or a prompt may be used. */
  has(server: string, name: string): boolean
  /** Whether anything of a server may be used. */
  hasAny(server: string): boolean
  /** Whether everything of a server may be used, so that its resources may be read. */
  hasAll(server: string): boolean
}

/** The access of a caller whose toolset no longer exists. */
export const NO_TOOLS: ToolAccess = { has: () => false, hasAny: () => false, hasAll: () => false }

const EVERYTHING: ToolAccess = { has: () => true, hasAny: () => true, hasAll: () => true }

/**
 * What a caller may use: all of the caller's toolsets, or the named one of them. Undefined if the caller has no toolset of
 * that name. `docs/mcp.md: Toolsets`.
 */
export function toolAccess(
  { toolsets, isRestricted }: McpSettings,
  caller: Caller,
  only: string | undefined,
): ToolAccess | undefined {
  if (!isRestricted && caller.token.toolsets.length === 0) return only === undefined ? EVERYTHING : undefined
  const { toolsets: named } = caller.token
  const own = toolsets.filter((one) => isFor(one, caller) && (named.length === 0 || named.includes(one.name)))
  const used = only === undefined ? own : own.filter(({ name }) => name === only)
  if (only !== undefined && used.length === 0) return undefined
  const patterns = used.flatMap(({ tools }) => tools.map(splitPattern))
  return {
    has: (server, name) =>
      patterns.some(
        (one) => matchesWildcard('*', one.server, server) && matchesWildcard('*', one.name, name),
      ),
    hasAny: (server) => patterns.some((one) => matchesWildcard('*', one.server, server)),
    hasAll: (server) => patterns.some((one) => one.name === '*' && matchesWildcard('*', one.server, server)),
  }
}

function isFor({ groups, users }: McpToolset, { token, user }: Caller): boolean {
  if (!groups && !users) return true
  const group = token.group === '' ? user.group : token.group
  return groups?.includes(group) === true || users?.includes(user.username) === true
}

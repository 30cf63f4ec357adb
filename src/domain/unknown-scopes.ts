import { matchesWildcard } from './matches-wildcard.ts'
import { splitPattern } from './mcp.ts'
import { findNearest } from './nearest.ts'
import type { Settings } from './settings.ts'

/** The names by which a guard or a toolset is limited. */
interface Scope {
  readonly models?: readonly string[] | undefined
  readonly groups?: readonly string[] | undefined
  readonly tools?: readonly string[]
}

/** An entry of a scope, and what is wrong with it. */
interface UnknownEntry {
  readonly path: [list: keyof Scope, index: number]
  readonly message: string
}

/**
 * Returns a function that finds the entries of a scope to which nothing corresponds: they are probably misspelt, so that a
 * guard checks nothing. They are not refused, because groups, channels and servers can be added later. Messages
 * contain `place`, which says where the settings are from if others can be elsewhere.
 */
export function unknownScopes(
  { groups, channels, models, mcp }: Settings,
  place = '',
): (scope: Scope) => UnknownEntry[] {
  const called = new Set([...models.declared, ...channels.flatMap((channel) => channel.models)])
  const wrongIn: { readonly [List in keyof Scope]-?: (name: string) => string | undefined } = {
    models: (name) =>
      called.has(name) || mcp.servers.some((server) => name.startsWith(`${server.name}_`))
        ? undefined
        : `no channel${place} serves ${name}`,
    groups(name) {
      if (groups.has(name)) return undefined
      const nearest = findNearest(name, groups.keys())
      return `there is no group ${name}${place}${nearest === undefined ? '' : ` (${nearest}?)`}`
    },
    tools: (pattern) =>
      mcp.servers.some(({ name }) => matchesWildcard('*', splitPattern(pattern).server, name))
        ? undefined
        : `there is no server${place} for ${pattern}`,
  }
  return (scope) =>
    (['models', 'groups', 'tools'] as const).flatMap((list) =>
      (scope[list] ?? []).flatMap((name, index) => {
        const message = wrongIn[list](name)
        return message === undefined ? [] : [{ path: [list, index] as [keyof Scope, number], message }]
      }),
    )
}

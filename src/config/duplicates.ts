import type { Issue } from './issues.ts'
import type { Path } from './diagnostics.ts'
import { child, items, type YamlNode, YamlScalar } from './yaml-node.ts'

/**
 * Finds duplicates of the names of channels and identity providers, receivers of alerts, user ids and
 * names, access tokens, names of a user's tokens, and API keys. It looks in the YAML tree, so that another
 * error in an entry does not hide these.
 */
export function duplicates(tree: YamlNode): Issue[] {
  const users = entries(child(tree, 'users'), ['users'])
  const tokens = users.map(({ tree, path }) => entries(child(tree, 'tokens'), [...path, 'tokens']))
  return [
    ...repeated(entries(child(tree, 'channels'), ['channels']), 'name'),
    ...repeated(entries(child(child(tree, 'login'), 'oidc'), ['login', 'oidc']), 'name'),
    ...repeated(entries(child(tree, 'alerts'), ['alerts']), 'url'),
    ...repeated(users, 'id'),
    ...repeated(users, 'username'),
    ...repeated(users, 'access_token'),
    ...tokens.flatMap((ofOneUser) => repeated(ofOneUser, 'name')),
    ...repeated(tokens.flat(), 'key', (key) => key.replace(/^(?:sk-)+/, '')),
  ]
}

interface Entry {
  readonly tree: YamlNode
  readonly path: Path
}

function entries(tree: YamlNode, path: Path): Entry[] {
  return items(tree).map((entry, index) => ({ tree: entry, path: [...path, index] }))
}

function repeated(all: readonly Entry[], key: string, normalize = (value: string): string => value): Issue[] {
  const seen = new Set<string>()
  return all.flatMap(({ tree, path }) => {
    const scalar = child(tree, key)
    if (!(scalar instanceof YamlScalar)) return []
    const value = normalize(String(scalar.value))
    if (!seen.has(value)) {
      seen.add(value)
      return []
    }
    return [{ path: [...path, key], message: `expected a different ${key}, another entry has the same` }]
  })
}

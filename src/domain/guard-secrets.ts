import { type GuardMatch, HIDDEN_SECRET, isTextMatch } from './guard.ts'
import { isSecretSetting } from './secret-settings.ts'

/** A match as gateway.yaml declares it, with `***` in place of secrets. */
export function maskedGuardMatch(match: GuardMatch): Record<string, unknown> {
  const { kind, ...members } = match
  return isTextMatch(match) ? members : { [kind]: withSecrets(kind, members, () => HIDDEN_SECRET) }
}

/**
 * The members of a service of this kind, with `replace` called for each secret: a text, an item of a list (`place` is its
 * index) or a value of a mapping (its key).
 */
export function withSecrets(
  kind: string,
  members: Readonly<Record<string, unknown>>,
  replace: (secret: unknown, member: string, place?: string) => unknown,
): Record<string, unknown> {
  const replaced = ([member, value]: [string, unknown]): [string, unknown] => {
    if (!isSecretSetting(`guards.match.${kind}.${member}`)) return [member, value]
    if (typeof value !== 'object' || value === null) return [member, replace(value, member)]
    const parts = Object.entries(value).map(([place, part]) => [place, replace(part, member, place)] as const)
    return [member, Array.isArray(value) ? parts.map(([, part]) => part) : Object.fromEntries(parts)]
  }
  return Object.fromEntries(Object.entries(members).map(replaced))
}

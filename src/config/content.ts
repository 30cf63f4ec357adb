import type { AlertTarget } from '../domain/alert.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { UserSeed } from '../domain/records/user.ts'
import type { LoginSettings } from '../domain/login-settings.ts'
import type { Group } from '../domain/records/group.ts'
import type { Options, RateLimits } from '../domain/settings.ts'
import { OPTIONS } from '../domain/options.ts'
import { alerts } from './alerts.ts'
import { channel } from './channels.ts'
import type { ParsedDocument, DocumentDiagnostic } from './document.ts'
import { duplicates } from './duplicates.ts'
import { list, section } from './fields.ts'
import { declaredGroups, groups } from './groups.ts'
import { type Issue, issuesOf } from './issues.ts'
import { pathText } from './diagnostics.ts'
import { login } from './login.ts'
import type { ModelSettings } from '../domain/records/model.ts'
import { models } from './models.ts'
import { options } from './options.ts'
import { rateLimits } from './rate-limits.ts'
import { user } from './users.ts'
import { child, type YamlNode } from './yaml-node.ts'

/** The content of the file, with defaults filled in. */
export interface FileContent {
  readonly options: Options
  readonly rateLimits: RateLimits
  readonly groups: ReadonlyMap<string, Group>
  readonly models: ReadonlyMap<string, ModelSettings>
  readonly channels: readonly Channel[]
  readonly users: readonly UserSeed[]
  readonly login: LoginSettings
  readonly alerts: readonly AlertTarget[]
}

/** Reads the sections of the file; errors come as diagnostics with their lines. */
export function readContent({ tree, lineOf, diagnostics }: ParsedDocument): {
  content?: FileContent
  diagnostics: DocumentDiagnostic[]
} {
  const { content, issues } = readSections(tree)
  const all = [
    ...diagnostics,
    ...issues.map(({ path, message }) => ({ line: lineOf(path), path: pathText(path), message })),
  ]
  return content && all.length === 0 ? { content, diagnostics: [] } : { diagnostics: all }
}

/**
 * Reads the sections of a file, or of a file merged with stored settings. Channels and users refer to
 * groups, and `quota_per_unit` bounds quotas: those count even if other entries of their sections are
 * invalid.
 */
export function readSections(tree: YamlNode): { content?: FileContent; issues: Issue[] } {
  const declared = declaredGroups(child(tree, 'groups'))
  const quotaPerUnit =
    options.safeParse(child(tree, 'options')).data?.quota_per_unit ?? OPTIONS.quota_per_unit.default
  const read = section({
    options,
    rate_limits: rateLimits,
    groups,
    models,
    channels: list(channel(new Set(declared.keys())), 'a list of channels'),
    users: list(user(declared, quotaPerUnit), 'a list of users'),
    login: login(new Set(declared.keys())),
    alerts,
  }).safeParse(tree)
  const repeated = duplicates(tree)
  if (!read.success) return { issues: [...issuesOf(read.error), ...repeated] }
  const { rate_limits, ...rest } = read.data
  return { content: { rateLimits: rate_limits, ...rest }, issues: repeated }
}

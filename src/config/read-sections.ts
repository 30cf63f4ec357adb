import { ALERT_FORMATS, ALERT_TYPES, type AlertTarget, mailAddresses } from '../domain/alert.ts'
import type { Guard } from '../domain/guard.ts'
import type { ContentLogSettings } from '../domain/content-log.ts'
import type { McpSettings } from '../domain/mcp.ts'
import type { LoginSettings, RateLimits } from '../domain/settings.ts'
import { pointsToMetadataAddress } from '../domain/metadata-address.ts'
import { type Options, OPTIONS } from '../domain/options.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Group } from '../domain/records/group.ts'
import { FALLBACK_REASONS, MODEL_SETTINGS, type ModelSettings } from '../domain/records/model.ts'
import type { DeclaredUser } from '../domain/records/user.ts'
import { channelSchema } from './channels.ts'
import { contentLogSchema } from './content-log.ts'
import { type Path, pathText } from './diagnostics.ts'
import type { DocumentDiagnostic, ParsedDocument } from './document.ts'
import {
  schemasOfDeclaredFields,
  dictionarySchema,
  type Field,
  type Issue,
  issuesOf,
  listSchema,
  oneOfSchema,
  retentionSchema,
  secretSchema,
  sectionSchema,
} from './fields.ts'
import { declaredGroups, groupsSchema } from './groups.ts'
import { guardsSchema, unknownGuards } from './guards.ts'
import { invisibleNames } from './invisible-names.ts'
import { loginSchema } from './login.ts'
import { mcpSchema, unknownToolsets } from './mcp.ts'
import { optionsSchema } from './options.ts'
import { priceSchema } from './prices.ts'
import { rateLimitSchema, rateLimitsSchema } from './rate-limits.ts'
import { userSchema } from './users.ts'
import { childOfNode, itemsOfNode, type YamlNode, YamlScalar } from './yaml-node.ts'

/** The content of the file, with defaults filled in. */
export interface ConfigFileContent {
  readonly options: Options
  readonly rateLimits: RateLimits
  readonly groups: ReadonlyMap<string, Group>
  readonly models: ReadonlyMap<string, ModelSettings>
  readonly channels: readonly Channel[]
  readonly users: readonly DeclaredUser[]
  readonly login: LoginSettings
  readonly alerts: readonly AlertTarget[]
  readonly guards: readonly Guard[]
  readonly contentLog: ContentLogSettings
  readonly mcp: McpSettings
}

/** Reads the sections of the file. Errors are returned as diagnostics with their lines. */
export function readFileContent({ tree, lineOf, diagnostics }: ParsedDocument): {
  content?: ConfigFileContent
  diagnostics: DocumentDiagnostic[]
} {
  const { content, issues } = readSections(tree)
  const all = [
    ...diagnostics,
    ...[...issues, ...invisibleNames(tree)].map(({ path, message }) => ({
      line: lineOf(path),
      path: pathText(path),
      message,
    })),
  ]
  return content && all.length === 0 ? { content, diagnostics: [] } : { diagnostics: all }
}

/**
 * Reads the sections of a file, or of a file merged with stored settings. Groups and `quota_per_unit` are
 * needed to check channels and users, so they are used even if other entries of their sections are invalid.
 */
export function readSections(tree: YamlNode): { content?: ConfigFileContent; issues: Issue[] } {
  const declared = declaredGroups(childOfNode(tree, 'groups'))
  const quotaPerUnit =
    optionsSchema.safeParse(childOfNode(tree, 'options')).data?.quota_per_unit ??
    OPTIONS.quota_per_unit.default
  const read = fileSchema(declared, quotaPerUnit).safeParse(tree)
  const repeated = [...duplicates(tree), ...unknownGuards(tree), ...unknownToolsets(tree)]
  if (!read.success) return { issues: [...issuesOf(read.error), ...repeated] }
  const { rate_limits, content_log, ...rest } = read.data
  if (rest.options.smtp === undefined)
    for (const [index, { url: address }] of rest.alerts.entries())
      if (mailAddresses(address)) repeated.push({ path: ['alerts', index, 'url'], message: NO_MAIL_SERVER })
  return { content: { rateLimits: rate_limits, contentLog: content_log, ...rest }, issues: repeated }
}

/** Schema of the file. Checks of groups and users need the declared groups, and the quota units of a US dollar. */
export function fileSchema(declared: ReadonlyMap<string, Group>, quotaPerUnit: number) {
  const names = new Set(declared.keys())
  return sectionSchema({
    options: optionsSchema,
    rate_limits: rateLimitsSchema,
    groups: groupsSchema,
    models,
    channels: listSchema(channelSchema(names), 'a list of channels'),
    users: listSchema(userSchema(declared, quotaPerUnit), 'a list of users'),
    login: loginSchema(names),
    alerts,
    guards: guardsSchema,
    content_log: contentLogSchema,
    mcp: mcpSchema,
  })
}

const NO_MAIL_SERVER = 'expected options.smtp, by which a mailto: receiver is reached'

const settings = schemasOfDeclaredFields(MODEL_SETTINGS.fields, {
  price: priceSchema,
  rate_limit: rateLimitSchema,
  cache: retentionSchema,
})

/** Schema of the section `models`: `docs/configuration.md: Models`. */
const models: Field<ReadonlyMap<string, ModelSettings>> = dictionarySchema(
  sectionSchema(settings),
  'a mapping from model names',
).superRefine((given, ctx) => {
  const message = 'expected another model than the one that it stands in for'
  for (const [model, entry] of given) {
    const { successor } = entry
    for (const list of ['fallback', ...FALLBACK_REASONS] as const) {
      const index = entry[list].indexOf(model)
      if (index !== -1) ctx.addIssue({ code: 'custom', path: [model, list, index], message })
    }
    if (successor === model) ctx.addIssue({ code: 'custom', path: [model, 'successor'], message })
  }
})

/** Minimum length of a key for signing alerts, in bytes, as the Standard Webhooks specification requires. */
const MIN_KEY_BYTES = 24
const MAX_KEY_BYTES = 64

// URLs of receivers often contain passwords, so messages do not repeat them.
const url = secretSchema(
  "an http:// or https:// URL without a user and password, and not of a cloud's metadata service, or mailto: with addresses",
  (given) => {
    if (mailAddresses(given)) return given
    const parsed = /^https?:\/\//i.test(given) && !/[\s\\]/.test(given) ? URL.parse(given) : null
    if (!parsed || parsed.username !== '' || parsed.password !== '') return undefined
    return pointsToMetadataAddress(given) ? undefined : given
  },
)

const SIGNING_SECRET =
  'whsec_ and 24 to 64 bytes in base64, as echo "whsec_$(openssl rand -base64 32)" makes them'

const signingSecret = secretSchema(SIGNING_SECRET, (given) => {
  const base64 = given.replace(/^whsec_/, '')
  const bytes = Buffer.from(base64, 'base64')
  const isKey = bytes.length >= MIN_KEY_BYTES && bytes.length <= MAX_KEY_BYTES
  return isKey && bytes.toString('base64') === base64 ? `whsec_${base64}` : undefined
})

const target: Field<AlertTarget> = sectionSchema({
  url,
  secret: signingSecret.optional(),
  format: oneOfSchema(ALERT_FORMATS).default('standard'),
  events: listSchema(oneOfSchema(ALERT_TYPES), 'a list of at least one event', 1),
})
  .superRefine(({ url: address, format, secret }, ctx) => {
    const isMail = mailAddresses(address) !== undefined
    if (format === 'standard' && !isMail && secret === undefined)
      ctx.addIssue({ code: 'custom', path: ['secret'], message: `expected ${SIGNING_SECRET}` })
    if (format !== 'standard' && isMail)
      ctx.addIssue({
        code: 'custom',
        path: ['format'],
        message: 'expected no format beside a mailto: address',
      })
  })
  .transform(
    ({ url: address, secret = '', format, events }): AlertTarget => ({
      url: address,
      secret,
      format,
      types: events,
    }),
  )

/** Schema of the section `alerts`: `docs/configuration.md: Alerts`. */
const alerts: Field<readonly AlertTarget[]> = listSchema(target, 'a list of receivers')

/**
 * Finds duplicate names of channels, identity providers, guards, MCP servers, toolsets and alert receivers, duplicate user ids and
 * names, access tokens and API keys, and duplicate token names of a user. It searches the YAML tree, so that
 * it finds them even in entries with other errors.
 */
function duplicates(tree: YamlNode): Issue[] {
  const users = entries(childOfNode(tree, 'users'), ['users'])
  const tokens = users.map(({ tree, path }) => entries(childOfNode(tree, 'tokens'), [...path, 'tokens']))
  return [
    ...repeated(entries(childOfNode(tree, 'channels'), ['channels']), 'name'),
    ...repeated(entries(childOfNode(childOfNode(tree, 'login'), 'oidc'), ['login', 'oidc']), 'name'),
    ...repeated(entries(childOfNode(tree, 'alerts'), ['alerts']), 'url'),
    ...repeated(entries(childOfNode(tree, 'guards'), ['guards']), 'name'),
    ...['servers', 'toolsets'].flatMap((list) =>
      repeated(entries(childOfNode(childOfNode(tree, 'mcp'), list), ['mcp', list]), 'name'),
    ),
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
  return itemsOfNode(tree).map((entry, index) => ({ tree: entry, path: [...path, index] }))
}

function repeated(all: readonly Entry[], key: string, normalize = (value: string): string => value): Issue[] {
  const seen = new Set<string>()
  return all.flatMap(({ tree, path }) => {
    const scalar = childOfNode(tree, key)
    if (!(scalar instanceof YamlScalar)) return []
    const value = normalize(String(scalar.value))
    if (!seen.has(value)) {
      seen.add(value)
      return []
    }
    return [{ path: [...path, key], message: `expected a different ${key}, another entry has the same` }]
  })
}

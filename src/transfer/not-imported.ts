import {
  isRowDeleted,
  type OtherGatewayDatabase,
  type NotImportedTable,
  MAX_COUNTED_ROWS,
} from '@sluice/import/other-gateway'
import { RowReader } from '@sluice/import/row-reader'
import type { ReportLine } from '../domain/import-line.ts'

/** What the rows of a table are called (plural), and what the operator can do instead of importing them. */
type Left = readonly [rows: string, wayOut: string]

const KEEP = 'keep the other database'
const BY_PROVIDER = 'let the users sign in at an identity provider (login.oidc in gateway.yaml)'
const NEW_PASSWORD = '"sluice user password NAME" sets a password'
const IN_BALANCES = 'their quota is in the balances'

/** Tables of one-api, new-api and LiteLLM that are not imported. */
const TABLES: ReadonlyMap<string, Left> = new Map<string, Left>([
  [
    'two_fas',
    ['two-factor secrets', `passwords alone sign in here: ${BY_PROVIDER} that asks for a second factor`],
  ],
  ['two_fa_backup_codes', ['backup codes of two-factor secrets', 'they are of no use without the secrets']],
  ['passkey_credentials', ['passkeys', `${NEW_PASSWORD}, or ${BY_PROVIDER}`]],
  [
    'user_oauth_bindings',
    [
      'OAuth bindings',
      `declare the provider in login.oidc, and let each user link the identity; ${NEW_PASSWORD}`,
    ],
  ],
  [
    'external_identity_claims',
    [
      'OAuth bindings',
      `declare the provider in login.oidc, and let each user link the identity; ${NEW_PASSWORD}`,
    ],
  ],
  [
    'custom_oauth_providers',
    ['OAuth providers', 'declare those of OpenID Connect in gateway.yaml (login.oidc)'],
  ],
  ['user_sessions', ['sessions', 'users sign in again']],
  [
    'redemptions',
    [
      'redemption codes',
      `those that were redeemed are in the balances; "sluice user top-up NAME QUOTA" adds the quota of others`,
    ],
  ],
  ['top_ups', ['top-ups', `${IN_BALANCES}; ${KEEP} for the books`]],
  ['checkins', ['check-ins', IN_BALANCES]],
  [
    'subscription_plans',
    ['subscription plans', 'budgets of a day, week or month take their place (budget_period)'],
  ],
  [
    'user_subscriptions',
    ['subscriptions of users', '"sluice user update NAME --budget N --per month" gives a user a budget'],
  ],
  ['subscription_orders', ['orders of subscriptions', `${KEEP} for the books`]],
  [
    'subscription_pre_consume_records',
    ['holds of subscriptions', 'stop the other gateway first, and none is open'],
  ],
  ['logs', ['entries of the log', `used quota is in the sums of users and tokens; ${KEEP} to look calls up`]],
  ['quota_data', ['sums of charts', `charts begin with the import; ${KEEP} to look at older ones`]],
  ['perf_metrics', ['measurements', 'metrics begin anew']],
  ['tasks', ['tasks of video and music', 'fetch the results there before it stops']],
  ['midjourneys', ['tasks of pictures', 'fetch the results there before it stops']],
  ['models', ['descriptions of models', 'models.NAME.vendor in gateway.yaml names the vendor of one']],
  ['vendors', ['vendors of models', 'models.NAME.vendor in gateway.yaml names the vendor of one']],
  [
    'LiteLLM_SpendLogs',
    ['entries of the log', `spend is in the sums of users and keys; ${KEEP} to look calls up`],
  ],
  ['LiteLLM_AuditLog', ['entries of the audit log', KEEP]],
  ['LiteLLM_TeamMembership', ['limits of members of teams', 'give the keys of these members a budget']],
  ['LiteLLM_OrganizationTable', ['organizations', 'give the groups of their teams a budget']],
  ['LiteLLM_OrganizationMembership', ['members of organizations', 'their keys carry over']],
  ['LiteLLM_ProjectTable', ['projects', 'their keys carry over with the limits of their teams']],
  ['LiteLLM_ModelTable', ['aliases of models in teams', 'add the names to model_mapping of the channels']],
  ['LiteLLM_AccessGroupTable', ['groups of models', 'list the models in model_limits of the keys']],
  ['LiteLLM_EndUserTable', ['customers', 'give each a key with a budget']],
  [
    'LiteLLM_CredentialsTable',
    ['credentials', 'they are encrypted with the salt key of LiteLLM: give the channels their keys'],
  ],
  [
    'LiteLLM_ObjectPermissionTable',
    ['permissions for tools and vector stores', 'they have no counterpart here'],
  ],
  ['LiteLLM_GuardrailsTable', ['guardrails', 'declare them in guards of gateway.yaml']],
  ['LiteLLM_InvitationLink', ['invitations', 'invite these users again']],
  ['LiteLLM_DeletedVerificationToken', ['deleted keys', 'they do not work there either']],
  ['LiteLLM_DeprecatedVerificationToken', ['replaced keys', 'use the keys that replaced them']],
  ['prefill_groups', ['prepared lists of models and groups', 'only forms of the other console use them']],
])

const UNKNOWN: Left = ['rows of a table that is unknown here', `look at what it has, and ${KEEP}`]

/**
 * Columns with identities at other services. They are imported, but users cannot sign in to this gateway with
 * them.
 */
const LOGINS: readonly (readonly [column: string, service: string])[] = [
  ['github_id', 'GitHub'],
  ['discord_id', 'Discord'],
  ['oidc_id', 'OpenID Connect'],
  ['wechat_id', 'WeChat'],
  ['telegram_id', 'Telegram'],
  ['linux_do_id', 'LINUX DO'],
]

/** Lists with counts what is never imported: tables, and logins with other services. */
export function listNotImported({
  users,
  leftTables,
}: Pick<OtherGatewayDatabase, 'users' | 'leftTables'>): ReportLine[] {
  const present = users.map((row) => new RowReader(row)).filter((cells) => !isRowDeleted(cells, 'user'))
  const logins = LOGINS.flatMap(([column, service]): ReportLine[] => {
    const count = present.filter((cells) => cells.lenient(() => cells.text(column).trim(), '') !== '').length
    if (count === 0) return []
    const wayOut =
      column === 'oidc_id'
        ? `declare the provider in gateway.yaml (login.oidc), and let each user link the identity; ${NEW_PASSWORD}`
        : `the ids are kept, but users cannot sign in with them; ${NEW_PASSWORD}, or ${BY_PROVIDER}`
    return [left('login', service, `${count} users`, { count, wayOut })]
  })
  return [...logins, ...leftTables.map(tableLine)]
}

function tableLine({ name, rows: count }: NotImportedTable): ReportLine {
  const [rows, wayOut] = TABLES.get(name) ?? UNKNOWN
  const number =
    count === undefined
      ? 'an unknown number of'
      : count > MAX_COUNTED_ROWS
        ? `more than ${MAX_COUNTED_ROWS}`
        : String(count)
  return left('table', name, `${number} ${rows}`, { wayOut, ...(count !== undefined && { count }) })
}

function left(
  kind: 'login' | 'table',
  name: string,
  note: string,
  more: Pick<ReportLine, 'count' | 'wayOut'>,
): ReportLine {
  return { kind, id: undefined, name, fate: 'left', notes: [note], ...more }
}

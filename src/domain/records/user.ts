import type { UsageLimits, UsageLimitChanges } from '../usage-limits.ts'
import { Role, ROLES } from '../role.ts'
import { TEXT_BYTE_LIMITS } from '../text-length.ts'
import {
  declaredNameType,
  flagType,
  labelType,
  nameType,
  nullableType,
  plainTextType,
  textType,
  integerType,
  oneOfType,
} from './field-types.ts'
import {
  type Edits,
  type Fields,
  type FieldNamesWith,
  type NewValues,
  declareRecord,
  type Row,
  type Values,
} from './record.ts'
import { USER_CONTENT_FIELDS } from './content-log.ts'
import { USAGE_LIMIT_FIELDS } from './usage-limits.ts'
import type { DeclaredToken } from './token.ts'

/** Status of a user. Disabled users can neither call models nor use their account. */
export const USER_STATUS = { enabled: 1, disabled: 2 } as const

/** Fields of a user that are needed for calls and charges. Quota is in whole quota units. */
const CALLER = {
  id: { type: integerType(), key: 'primary key' },
  username: {
    type: nameType(64),
    edit: 'admin',
    isRequired: true,
    audit: true,
    key: 'unique',
    declared: declaredNameType('a name for the user', 64).expected,
  },
  role: {
    type: oneOfType(ROLES, '1 (common user), 10 (admin) or 100 (root)'),
    default: Role.user,
    edit: 'admin',
    audit: true,
    admission: 'heed',
    declared: true,
    option: ['role', '1 common user, 10 admin, 100 root'],
  },
  status: { type: oneOfType(Object.values(USER_STATUS), '1 or 2'), audit: true, admission: 'recall' },
  group: {
    type: plainTextType('the name of a group', { 'x-max-bytes': TEXT_BYTE_LIMITS.plain, maxLength: 200 }),
    column: 'group_name',
    default: 'default',
    edit: 'admin',
    audit: true,
    admission: 'heed',
    declared: true,
    option: ['name', 'a group that the configuration declares'],
  },
  /** Remaining quota; negative after a call that cost more than was reserved for it. */
  quota: {
    type: integerType('a whole number of quota units'),
    default: 0,
    edit: 'admin',
    moves: true,
    audit: true,
    declared: true,
    option: ['amount', 'the quota of the user: 10usd, or quota units'],
  },
  /** Whether the balance is charged but never refuses a call. */
  unlimited_quota: {
    type: flagType,
    default: false,
    edit: 'admin',
    audit: true,
    admission: 'recall',
    declared: true,
    option: ['', 'limit the user by budgets alone'],
  },
  used_quota: { type: integerType(), default: 0 },
  request_count: { type: integerType(), default: 0 },
  ...USER_CONTENT_FIELDS,
} as const satisfies Fields

const KEPT_TEXT = { type: plainTextType(), default: '' } as const
const KEPT_NUMBER = { type: integerType(), default: 0 } as const
const HASH = { type: nullableType(plainTextType()), secret: true } as const

/** Users: `docs/api.md: User profile`, and columns that are never shown. */
export const USER = declareRecord(
  'users',
  {
    ...CALLER,
    display_name: { type: labelType(64), edit: 'holder', audit: true },
    email: { ...KEPT_TEXT, edit: 'admin', audit: true },
    code_host_id: KEPT_TEXT,
    chat_a_id: KEPT_TEXT,
    oidc_id: { ...KEPT_TEXT, audit: true },
    chat_b_id: KEPT_TEXT,
    chat_c_id: KEPT_TEXT,
    forum_id: KEPT_TEXT,
    aff_code: KEPT_TEXT,
    aff_count: KEPT_NUMBER,
    aff_quota: KEPT_NUMBER,
    aff_history_quota: KEPT_NUMBER,
    /** Id of the user who invited this one; 0 if nobody did. */
    inviter_id: KEPT_NUMBER,
    /** The console's settings of the user as JSON; empty if never set. */
    setting: KEPT_TEXT,
    payment_customer: KEPT_TEXT,
    sidebar_modules: KEPT_TEXT,
    /** Administrators' note about the user; the user cannot see it. */
    remark: { type: textType(255), default: '', edit: 'admin', audit: true, shown: 'admin' },
    /** Unix seconds at which the user was created. */
    created_time: { type: integerType(), shown: 'admin' },
    deleted_time: {
      type: nullableType(integerType()),
      default: null,
      shown: false,
      admission: 'recall',
    },
    password_hash: { ...HASH, audit: 'password' },
    access_token_hash: { ...HASH, key: 'unique', audit: 'access_token' },
    /** HMAC of the original name of a renamed user, by which gateway.yaml may still declare the user. */
    first_username: HASH,
    /**
     * HMAC of the username's comparable form, which ignores case (`comparableName`); null for deleted users.
     */
    comparable_name: HASH,
  },
  USAGE_LIMIT_FIELDS,
)

/** Fields by which a list of users can be sorted. */
export const USER_ORDERS = [
  'username',
  'role',
  'group',
  'status',
  'quota',
  'used_quota',
  'last_active',
] as const

/** The part of a user's record that is needed for calls and charges. */
export const CALLING_USER_RECORD = declareRecord('users', CALLER, USAGE_LIMIT_FIELDS)

type UserFields = typeof USER.fields

/** A user, with only the fields that are needed for calls and charges. */
export type User = Values<typeof CALLER> & UsageLimits

/** A user with all fields that administrators manage. `docs/api.md: Users`. */
export type ManagedUser = Values<UserFields> & UsageLimits & { readonly has_password: boolean }

/** A user to be created. Without a display name, the username is shown. */
export type NewUser = Omit<NewValues<UserFields>, 'display_name'> &
  Pick<User, 'role' | 'group' | 'quota'> & {
    readonly display_name?: string | undefined
    /** The access token in plain text; only its HMAC is stored. Null for none. */
    readonly accessToken: string | null
    /** Undefined if the user cannot log in with a password. */
    readonly passwordHash?: string | undefined
    readonly limits?: UsageLimitChanges | undefined
  }

/**
 * A user that gateway.yaml declares. It is created if there is none of that name. `docs/configuration.md:
 * Users`.
 */
export type DeclaredUser = Pick<
  NewUser,
  FieldNamesWith<UserFields, 'declared'> | keyof typeof USER_CONTENT_FIELDS
> & {
  /** Id of the user; undefined for the next free id. */
  readonly id?: number | undefined
  /**
   * The user's status. It is applied at each load of the configuration, even to an existing user, unlike most
   * fields; undefined if not declared.
   */
  readonly status?: User['status'] | undefined
  readonly access_token?: string | undefined
  /** Budget and rate limits, applied at each load of the configuration, even to an existing user. */
  readonly limits?: UsageLimitChanges | undefined
  readonly tokens: readonly DeclaredToken[]
}

/** Changes of a user; absent fields stay unchanged. */
export type UserChanges = {
  readonly [Name in Exclude<keyof Edits<UserFields>, 'quota'>]?: Edits<UserFields>[Name] | undefined
} & {
  readonly status?: User['status'] | undefined
  readonly passwordHash?: string | undefined
  readonly limits?: UsageLimitChanges | undefined
}

/** A user as a database row. */
export type UserRow = Row<UserFields> & Row<typeof USAGE_LIMIT_FIELDS>

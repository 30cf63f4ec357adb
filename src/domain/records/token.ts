import {
  type UsageLimits,
  NO_OPERATOR_LIMITS,
  type OperatorLimits,
  parseOperatorLimits,
  formatOperatorLimits,
  type UsageLimitChanges,
} from '../usage-limits.ts'
import { MAX_TIME_S } from '../calendar.ts'
import { allowListLines, isAddressRange } from '../ip-allow-list.ts'
import { ROUTE_MAP_EXPECTATION, parseVendorRoutes } from '../vendor-routes.ts'
import { TEXT_BYTE_LIMITS } from '../text-length.ts'
import {
  type FieldType,
  flagType,
  listType,
  listTextType,
  labelType,
  nameListType,
  nameType,
  nullableType,
  plainTextType,
  withRules,
  integerType,
  oneOfType,
} from './field-types.ts'
import {
  type Edits,
  type FieldNamesWith,
  type NewValues,
  declareRecord,
  type Row,
  type Values,
} from './record.ts'
import { TOKEN_CONTENT_FIELDS } from './content-log.ts'
import { USAGE_LIMIT_FIELDS } from './usage-limits.ts'

/** Status of a token, as stored and shown; `docs/api.md: Token`. */
export const TOKEN_STATUS = { enabled: 1, disabled: 2, expired: 3, exhausted: 4 } as const

/**
 * How a key that was sent is found: by the part up to its first hyphen (`plain`), by its whole text (`whole`), or by a
 * SHA-256 digest of its whole text, until the key is used for the first time (`digest`). `docs/moving.md: From LiteLLM`.
 */
export const KEY_FORMS = ['plain', 'digest', 'whole'] as const

/** One of the forms in `KEY_FORMS`. */
export type KeyForm = (typeof KEY_FORMS)[number]

/** Orders in which a list of tokens can be sorted. */
export const TOKEN_ORDERS = [
  'name',
  'status',
  'created_time',
  'accessed_time',
  'used_quota',
  'remain_quota',
] as const

/** One of the statuses in `TOKEN_STATUS`. */
export type TokenStatus = (typeof TOKEN_STATUS)[keyof typeof TOKEN_STATUS]

/** The minimum quota. With less, the balance of an unlimited token could leave the range of safe integers. */
const MIN_QUOTA = -(2 ** 52)
/** Maximum number of entries in a list of addresses. */
const MAX_ADDRESSES = 1000

const A_TIME = '-1 (never) or a time in Unix seconds'

const addresses = nullableType<string | null, string | null, string | null>({
  ...withRules(
    listTextType(TEXT_BYTE_LIMITS.addresses),
    {
      accepts: (given) => allowListLines(given).length <= MAX_ADDRESSES,
      expected: `at most ${MAX_ADDRESSES} entries`,
      isOverHttp: true,
    },
    {
      accepts: (given) => allowListLines(given).every(isAddressRange),
      expected: 'addresses and CIDRs, one a line',
    },
  ),
  fromJson: (given: string | null) => allowListLines(given).join('\n') || null,
})

const operatorLimits: FieldType<OperatorLimits, string> = {
  ...(plainTextType() as unknown as FieldType<OperatorLimits, string>),
  encode: formatOperatorLimits,
  decode: parseOperatorLimits,
}

/** API keys and their limits. Times are Unix seconds, quota is in whole units. `docs/api.md: Token`. */
export const TOKEN = declareRecord(
  'tokens',
  {
    id: { type: integerType(), key: 'primary key' },
    user_id: { type: integerType(), key: 'references users (id)', audit: true },
    name: {
      type: labelType(50),
      edit: 'holder',
      isRequired: true,
      audit: true,
      declared:
        'a name for the token (1 to 50 characters, none of them invisible, in quotes if it looks like a number)',
    },
    status: {
      type: oneOfType(Object.values(TOKEN_STATUS), '1, 2, 3 or 4'),
      audit: true,
      admission: 'recall',
    },
    created_time: { type: integerType() },
    /** Unix seconds of the last call; 0 if the key was never used. */
    accessed_time: { type: integerType(), default: 0 },
    /** Unix seconds at which the key expires; −1 if never. */
    expired_time: {
      type: withRules(integerType(A_TIME), {
        accepts: (time) => time === -1 || (time > 0 && time <= MAX_TIME_S),
        expected: A_TIME,
      }),
      default: -1,
      edit: 'holder',
      isRequired: true,
      audit: true,
      admission: 'heed',
      declared: true,
    },
    /** Remaining quota; negative after a call that cost more than was reserved for it. */
    remain_quota: {
      type: integerType('a whole number of quota units', { minimum: MIN_QUOTA }),
      edit: 'holder',
      isRequired: true,
      moves: true,
      audit: true,
      declared: true,
    },
    unlimited_quota: {
      type: flagType,
      default: false,
      edit: 'holder',
      audit: true,
      admission: 'recall',
      declared: true,
    },
    used_quota: { type: integerType(), default: 0 },
    model_limits_enabled: {
      type: flagType,
      default: false,
      edit: 'holder',
      audit: true,
      admission: 'heed',
      declared: true,
    },
    /** Names of the models that the key may use, separated by commas. */
    model_limits: {
      type: nameListType(TEXT_BYTE_LIMITS.list),
      default: '',
      edit: 'holder',
      audit: true,
      admission: 'heed',
      declared: 'model names with commas between them',
    },
    /** Addresses and CIDRs, one per line; null or blank for no restriction. */
    allow_ips: {
      type: addresses,
      default: null,
      edit: 'holder',
      audit: true,
      admission: 'heed',
      declared: true,
    },
    /** Name of the group that its calls use; empty for the user's own group. */
    group: {
      type: plainTextType('the name of a group', { 'x-max-bytes': TEXT_BYTE_LIMITS.plain, maxLength: 200 }),
      column: 'group_name',
      default: '',
      edit: 'holder',
      audit: true,
      admission: 'heed',
      declared: true,
      option: ['name', "the group that its calls go through; default the user's own"],
    },
    /** A JSON map from vendors to groups: calls of that vendor's models use that group instead of `group`. */
    vendor_routes: {
      type: withRules(listTextType(TEXT_BYTE_LIMITS.plain), {
        accepts: (given) => parseVendorRoutes(given) !== undefined,
        expected: ROUTE_MAP_EXPECTATION,
      }),
      default: '',
      edit: 'holder',
      audit: true,
      admission: 'heed',
      declared: true,
      option: ['json', 'groups by vendor, as a JSON map'],
    },
    /**
     * Names of guards that check all calls of the key, even if the guards are limited to other groups, models
     * or users.
     */
    guards: {
      type: listType(nameType(64), 'a list of names of guards'),
      default: [],
      edit: 'holder',
      audit: true,
      admission: 'heed',
      declared: true,
    },
    /** Names of MCP toolsets, to which the key is restricted; if empty, it has all toolsets of its user. */
    toolsets: {
      type: listType(nameType(64), 'a list of names of toolsets'),
      default: [],
      edit: 'holder',
      audit: true,
      admission: 'heed',
      declared: true,
    },
    ...TOKEN_CONTENT_FIELDS,
    /** The limits that an operator set; the holder of the key can only tighten them. */
    operator_terms: { type: operatorLimits, default: NO_OPERATOR_LIMITS, shown: false, admission: 'heed' },
    /** Unix seconds at which the token was deleted; null if it was not. Its row stays. */
    deleted_time: { type: nullableType(integerType()), default: null, shown: false, admission: 'recall' },
    /**
     * HMAC of the key without `sk-`, or what `importedKeyHash` returns for a digest. Unique among all tokens, including
     * deleted ones.
     */
    key_hash: { type: plainTextType(), key: 'unique', secret: true, audit: 'key' },
    /** Encrypted key without `sk-`; empty as long as only a digest of the key is known. */
    key_cipher: { type: plainTextType(), secret: true },
    /** SHA-256 of an imported key with `sk-`, in hexadecimal, by which a second import finds it; empty if there is none. */
    key_digest: { type: plainTextType(), default: '', secret: true },
    /** HMAC of the last four characters of the key, by which it can be found; empty until `tagKeyEnds` has computed it. */
    key_end: { type: plainTextType(), default: '', secret: true },
    /** How a key that was sent is looked up (`KEY_FORMS`). */
    key_form: { type: oneOfType(KEY_FORMS, 'plain, digest or whole'), default: 'plain', shown: false },
    /** The closed group that an imported key may use although it is not its user's; empty if there is none. */
    team_group: { type: plainTextType(), default: '', shown: false, admission: 'heed' },
  },
  USAGE_LIMIT_FIELDS,
)

type TokenFields = typeof TOKEN.fields

/** An API key and its limits, without the key itself. */
export type Token = Values<TokenFields> & UsageLimits

/** A token to be created, with its key in plain text without `sk-`; with `key_form` `digest`, with the key's digest. */
export type NewToken = NewValues<TokenFields> & UsageLimitChanges & { readonly key: string }

/**
 * A token that gateway.yaml declares. It is created if its user has no token of that name.
 * `docs/configuration.md: Users`.
 */
export type DeclaredToken = Pick<
  NewToken,
  FieldNamesWith<TokenFields, 'declared'> | keyof typeof TOKEN_CONTENT_FIELDS
> & {
  /** The key: letters and digits without `sk-`; generated if undefined. */
  readonly key?: string | undefined
  /** If undefined, a new token is enabled, and an existing one keeps its status. */
  readonly status?: 1 | 2 | undefined
  /**
   * Budget and rate limits. Unlike most fields they are applied at each load of the configuration, even to an
   * existing token.
   */
  readonly limits?: UsageLimitChanges | undefined
}

/** Changes of a token; absent fields stay unchanged. */
export type TokenChanges = Edits<TokenFields> & UsageLimitChanges

/** A token as a database row. */
export type TokenRow = Row<TokenFields> & Row<typeof USAGE_LIMIT_FIELDS>

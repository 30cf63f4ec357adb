import { z } from 'zod'
import { allowListLines, isAddressRange } from '../../domain/ip-allow-list.ts'
import type { TokenFields } from '../../store/operations/change-token.ts'
import { termFields } from '../call-terms.ts'
import { groupField, listField, nameField } from '../read-input.ts'
import { TEXT_BYTES } from '../text-fields.ts'

/** The lowest quota: below it, spending of an unlimited token could leave the safe integers. */
const MIN_QUOTA = -(2 ** 52)
/** Maximum entries of a list of addresses. */
const MAX_ADDRESSES = 1000

const A_TIME = { error: 'expected -1 (never) or a time in Unix seconds' }
const A_QUOTA = { error: 'expected a whole number of quota units' }
const flag = z.boolean({ error: 'expected true or false' }).nullish()

const name = nameField(50)
const expired_time = z.int(A_TIME).refine((time) => time === -1 || time > 0, A_TIME)
const remain_quota = z.int(A_QUOTA).min(MIN_QUOTA, A_QUOTA)

const optional = {
  unlimited_quota: flag,
  model_limits_enabled: flag,
  model_limits: listField().nullish(),
  allow_ips: listField(TEXT_BYTES.addresses)
    .refine((text) => allowListLines(text).length <= MAX_ADDRESSES, {
      error: `expected at most ${MAX_ADDRESSES} entries`,
      abort: true,
    })
    .refine((text) => allowListLines(text).every(isAddressRange), {
      error: 'expected addresses and CIDRs, one a line',
    })
    .nullish(),
  group: groupField().nullish(),
  vendor_routes: listField(TEXT_BYTES.plain).nullish(),
  ...termFields,
}

const FIELDS_EXPECTED = { error: 'expected an object with the fields of a token' }

/** The fields of a new token; null in an optional field is absence. `docs/api.md: Token management`. */
export const newTokenFields = z.object({ name, expired_time, remain_quota, ...optional }, FIELDS_EXPECTED)

/** The fields of a change, all optional; null is absence, except in `allow_ips`, where it is a value. */
export const changedTokenFields = z.object(
  {
    name: name.nullish(),
    expired_time: expired_time.nullish(),
    remain_quota: remain_quota.nullish(),
    ...optional,
  },
  FIELDS_EXPECTED,
)

/** The given fields, as they are stored. */
export function storedFields(given: z.output<typeof changedTokenFields>): TokenFields {
  return present({
    name: given.name ?? undefined,
    expired_time: given.expired_time ?? undefined,
    remain_quota: given.remain_quota ?? undefined,
    unlimited_quota: given.unlimited_quota ?? undefined,
    model_limits_enabled: given.model_limits_enabled ?? undefined,
    model_limits: given.model_limits?.trim(),
    allow_ips: given.allow_ips === undefined ? undefined : allowListLines(given.allow_ips).join('\n') || null,
    group: given.group ?? undefined,
    vendor_routes: given.vendor_routes?.trim(),
  })
}

type Present<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> }

function present<Fields extends object>(fields: Fields): Present<Fields> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Present<Fields>
}

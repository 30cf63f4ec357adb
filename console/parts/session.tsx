import { useSuspenseQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { type GatewayStatus, type Profile, profileQuery, statusQuery } from '../api/account.ts'
import { ROLE } from '../api/users.ts'
import { exactAmount, formatMoney, type MoneyDisplay, type Quota } from './money.ts'
import { usePreferences } from './preferences.ts'
import { formatDuration, formatRecent, formatTime } from './time.ts'
import { useTexts } from '../texts/use-texts.tsx'

/** The account that is signed in, and the gateway. */
export interface SignedIn {
  readonly profile: Profile
  readonly status: GatewayStatus
  readonly isAdmin: boolean
  readonly isRoot: boolean
  readonly display: MoneyDisplay
}

/** The account that is signed in. Both queries are answered before a page is shown. */
export function useSignedIn(): SignedIn {
  const { data: profile } = useSuspenseQuery(profileQuery)
  const { data: status } = useSuspenseQuery(statusQuery)
  return useMemo(
    () => ({
      profile,
      status,
      isAdmin: profile.role >= ROLE.admin,
      isRoot: profile.role >= ROLE.root,
      display: {
        kind: status.quota_display_type,
        quotaPerUnit: status.quota_per_unit,
        usdExchangeRate: String(status.usd_exchange_rate),
      },
    }),
    [profile, status],
  )
}

/** Numbers, money and times as this person reads them. */
export function useFormats() {
  const { tag, common } = useTexts()
  const { timeZone } = usePreferences()
  const { display } = useSignedIn()
  return useMemo(() => {
    const number = new Intl.NumberFormat(tag)
    const inUnits = display.kind === 'TOKENS'
    return {
      count: (count: number) => number.format(count),
      money: (quota: Quota) => {
        const text = formatMoney(quota, display, tag)
        return inUnits ? common.unitsOf(text) : text
      },
      exact: (quota: Quota) => `${exactAmount(quota, display)} ${inUnits ? common.units : display.kind}`,
      usd: (amount: number) =>
        new Intl.NumberFormat(tag, {
          style: 'currency',
          currency: 'USD',
          currencyDisplay: 'narrowSymbol',
          minimumFractionDigits: 2,
          maximumFractionDigits: 6,
        }).format(amount),
      time: (unixSeconds: number) => formatTime(unixSeconds, tag, timeZone),
      recent: (unixSeconds: number) => formatRecent(unixSeconds, Date.now() / 1000, tag, timeZone),
      duration: (milliseconds: number) => formatDuration(milliseconds, tag),
      timeZone,
    }
  }, [tag, common, timeZone, display])
}

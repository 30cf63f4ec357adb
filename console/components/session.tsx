import { useSuspenseQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { Role } from '../../src/domain/role.ts'
import { type Profile, type AppShellData, appShellQuery } from '../api/account.ts'
import { exactAmount, formatMoney, type MoneyDisplay, type Quota } from './money.ts'
import { usePreferences } from './preferences.ts'
import { formatClock, formatDay, formatDuration, formatMinute, formatRelative, formatTime } from './time.ts'
import { useTexts } from '../locales/use-texts.tsx'

/** The signed-in account and what it may do, and the version of the gateway. */
export interface SignedInAccount {
  readonly profile: Profile
  readonly version: string
  /** The groups that keys of the account may name, with their ratios. */
  readonly groups: AppShellData['groups']
  readonly isAdmin: boolean
  readonly isRoot: boolean
  readonly display: MoneyDisplay
}

/** The signed-in account. It is always defined, because pages are only shown after the account was loaded. */
export function useSignedInAccount(): SignedInAccount {
  const { data: shell } = useSuspenseQuery(appShellQuery)
  return useMemo(() => {
    const { user, version, groups, display } = shell
    return {
      profile: user,
      version,
      groups,
      isAdmin: user.role >= Role.admin,
      isRoot: user.role >= Role.root,
      display: {
        kind: display.kind,
        quotaPerUnit: display.quota_per_unit,
        usdExchangeRate: String(display.usd_exchange_rate),
      },
    }
  }, [shell])
}

/** Functions that format numbers, money and times for this user. */
export function useFormatters() {
  const { tag, common } = useTexts()
  const { timeZone } = usePreferences()
  const { display } = useSignedInAccount()
  return useMemo(() => {
    const number = new Intl.NumberFormat(tag)
    const percent = new Intl.NumberFormat(tag, { style: 'percent', maximumFractionDigits: 0 })
    const inUnits = display.kind === 'TOKENS'
    return {
      count: (count: number) => number.format(count),
      percent: (share: number) => percent.format(share),
      money: (quota: Quota) => {
        const text = formatMoney(quota, display, tag)
        return inUnits ? common.unitsOf(text) : text
      },
      /** The number of quota units in one unit of the displayed currency. */
      moneyStep:
        display.kind === 'TOKENS'
          ? 1
          : display.quotaPerUnit / (display.kind === 'CNY' ? Number(display.usdExchangeRate) : 1),
      exact: (quota: Quota) => `${exactAmount(quota, display)} ${inUnits ? common.units : display.kind}`,
      /** Formats a price, which is given in USD, in the displayed currency. */
      price: (usd: number) =>
        new Intl.NumberFormat(tag, {
          style: 'currency',
          currency: display.kind === 'CNY' ? 'CNY' : 'USD',
          currencyDisplay: 'narrowSymbol',
          minimumFractionDigits: 2,
          maximumFractionDigits: 6,
        }).format(
          display.kind === 'CNY' ? Number((usd * Number(display.usdExchangeRate)).toPrecision(12)) : usd,
        ),
      time: (unixSeconds: number) => formatTime(unixSeconds, tag, timeZone),
      day: (unixSeconds: number) => formatDay(unixSeconds, tag, timeZone),
      minute: (unixSeconds: number) => formatMinute(unixSeconds, tag, timeZone),
      clock: (unixSeconds: number) => formatClock(unixSeconds, Date.now() / 1000, tag, timeZone),
      recent: (unixSeconds: number) => formatRelative(unixSeconds, Date.now() / 1000, tag),
      duration: (milliseconds: number) => formatDuration(milliseconds, tag),
      timeZone,
    }
  }, [tag, common, timeZone, display])
}

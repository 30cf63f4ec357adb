import { Figures } from '../../components/figures.tsx'
import { ErrorAlert } from '../../components/error-alert.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useAccountLimits } from '../../components/use-account-limits.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './overview-page.module.css'

/** How much the account may still spend, and which limit determines that. */
export function RemainingQuota({ name }: { readonly name: string }) {
  const { overview, limits, common } = useTexts()
  const { profile } = useSignedInAccount()
  const { money, exact } = useFormatters()
  const { left, left_by } = useAccountLimits()
  return (
    <section aria-label={name}>
      <h2 className={classes['heading']}>{name}</h2>
      <Figures
        figures={[
          {
            label: overview.leftHere,
            value: left === null ? common.unlimited : money(left),
            title: left === null ? undefined : exact(left),
            note: left_by ? limits.by[left_by](profile.group) : undefined,
          },
        ]}
      />
      {left !== null && left <= 0 && <ErrorAlert text={overview.nothingLeft} />}
    </section>
  )
}

import type { CallDetail } from '../../api/calls.ts'
import { useFormatters } from '../../components/session.tsx'
import { isServedInAnotherTier, useTierNames } from '../../components/use-tier-names.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './call-details.module.css'
import { callCostLines, type CallCostLine } from './call-cost.ts'
import { useCostLineNames } from './use-cost-line-names.ts'

/** The cost lines of a call, and how they add up to the charge. */
export function CostLines({ call }: { readonly call: CallDetail }) {
  const { call: texts, tag } = useTexts()
  // The amount is formatted from a string, because a number would lose digits.
  const exactly = new Intl.NumberFormat(tag, { maximumFractionDigits: 20 })
  const { count, money, exact } = useFormatters()
  const { cost, rounded, ratio } = call
  if (call.reason === 'failed' && call.quota === 0)
    return <p className={classes['note']}>{texts.nothingCharged}</p>
  return (
    <>
      <table className={classes['lines']} aria-label={texts.table}>
        <thead>
          <tr>
            <th scope="col">{texts.kind}</th>
            <th scope="col">{texts.count}</th>
            <th scope="col">{texts.price}</th>
            <th scope="col">{texts.amount}</th>
          </tr>
        </thead>
        <tbody>
          {callCostLines(call).map((line) => (
            <CostLine key={line.kind} line={line} />
          ))}
        </tbody>
        <tfoot>
          {rounded !== null && ratio !== null && (
            <>
              <tr>
                <th scope="row" colSpan={3}>
                  {texts.sum}
                </th>
                <td title={exact(rounded)}>{money(rounded)}</td>
              </tr>
              <tr>
                <th scope="row" colSpan={3}>
                  {texts.ratio(call.group)}
                </th>
                <td>{`× ${ratio}`}</td>
              </tr>
            </>
          )}
          <tr data-charge>
            <th scope="row" colSpan={3}>
              {texts.charge}
            </th>
            <td title={texts.exact(exact(call.quota))}>{money(call.quota)}</td>
          </tr>
        </tfoot>
      </table>
      <ServedTerms call={call} />
      <p className={classes['note']}>
        {rounded !== null && ratio !== null
          ? texts.inUnits(exactly.format(rounded as `${number}`), ratio, count(call.quota))
          : cost === null && texts.notByCounts}
        {call.minimum && ` ${texts.minimum}`}
        {call.tier_above !== null && ` ${texts.tier(count(call.tier_above))}`}
      </p>
    </>
  )
}

/** The service tier and the region whose prices were applied, if they are not the standard ones. */
function ServedTerms({ call }: { readonly call: CallDetail }) {
  const { call: texts } = useTexts()
  const { nameOf } = useTierNames()
  const { service_tier: served, requested_service_tier: asked, region } = call
  const terms = [
    ...(isServedInAnotherTier(call) ? [texts.askedServed(lower(nameOf(asked)), lower(nameOf(served)))] : []),
    ...(served === '' || served === 'standard' ? [] : [texts.pricesOf(lower(nameOf(served)))]),
    ...(region === '' ? [] : [texts.pricesIn(region)]),
  ]
  return terms.length > 0 && <p className={classes['note']}>{terms.join(' ')}</p>
}

/** The name of a service tier in lower case, as it is written within a sentence. */
function lower(name: string): string {
  return name.toLowerCase()
}

function CostLine({ line: { kind, count: counted, price, quota } }: { readonly line: CallCostLine }) {
  const { call } = useTexts()
  const { count, money, exact, price: priceText } = useFormatters()
  const { nameOf, isPerMillion } = useCostLineNames()
  const shown = price === undefined ? '' : priceText(Number(price))
  return (
    <tr data-part={price === undefined || undefined}>
      <th scope="row">{nameOf(kind)}</th>
      <td>{count(counted)}</td>
      <td>{shown !== '' && isPerMillion(kind) ? call.perMillion(shown) : shown}</td>
      <td title={quota === undefined ? undefined : exact(quota)}>{quota !== undefined && money(quota)}</td>
    </tr>
  )
}

import type { ManagedModel } from '../../api/models.ts'
import { useFormatters } from '../../components/session.tsx'
import { useTierNames } from '../../components/use-tier-names.ts'
import { useTexts } from '../../locales/use-texts.tsx'

/**
 * Describes in one line what a model costs in other cases than usual: `above 200,000 tokens $6 in, $30 out, Flex ×0.5, us ×1.1`.
 */
export function useServicePriceText(): (
  model: Pick<ManagedModel, 'tiers' | 'service' | 'regions'>,
) => string {
  const { models, common } = useTexts()
  const { price, count } = useFormatters()
  const { nameOf } = useTierNames()
  const ownPrices = (one: Readonly<Record<string, unknown>>): string =>
    models.ownPrices(price(Number(one['input'])), price(Number(one['output'])))
  const costOf = (one: ManagedModel['service'][string]): string =>
    typeof one === 'number' ? `\u00a0×${one}` : ` ${ownPrices(one)}`
  return ({ tiers, service, regions }) =>
    [
      ...tiers.map((one) => `${models.aboveTokens(count(one.above))} ${ownPrices(one)}`),
      ...Object.entries(service).map(([tier, one]) => nameOf(tier) + costOf(one)),
      ...Object.entries(regions).map(([region, factor]) => `${region}\u00a0×${factor}`),
    ].join(common.comma)
}

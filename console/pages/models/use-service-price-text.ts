import type { ManagedModel } from '../../api/models.ts'
import { useFormatters } from '../../components/session.tsx'
import { useTierNames } from '../../components/use-tier-names.ts'
import { useTexts } from '../../locales/use-texts.tsx'

/** Describes the prices of a model's service tiers and regions in one line: `Flex ×0.5, Fast ×2, us ×1.1`. */
export function useServicePriceText(): (model: Pick<ManagedModel, 'service' | 'regions'>) => string {
  const { models, common } = useTexts()
  const { price } = useFormatters()
  const { nameOf } = useTierNames()
  const costOf = (one: ManagedModel['service'][string]): string =>
    typeof one === 'number'
      ? `\u00a0×${one}`
      : ` ${models.ownPrices(price(Number(one['input'])), price(Number(one['output'])))}`
  return ({ service, regions }) =>
    [
      ...Object.entries(service).map(([tier, one]) => nameOf(tier) + costOf(one)),
      ...Object.entries(regions).map(([region, factor]) => `${region}\u00a0×${factor}`),
    ].join(common.comma)
}

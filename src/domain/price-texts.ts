import { decimalText } from './decimal.ts'
import type { Price } from './price.ts'
import { byUnit } from './price-units.ts'
import { imagesJson } from './ratios.ts'
import { tokenPriceTexts } from './token-kinds.ts'
import type { ToolPrices } from './tool-use.ts'
import type { JsonObject } from './json.ts'

/** A price as gateway.yaml would state it, without its tiers. */
export function priceTexts({ tokens, request, tools, image, ...units }: Price): JsonObject {
  const { web_search: webSearch, ...otherTools } = tools
  return {
    ...tokenPriceTexts(tokens),
    request: decimalText(request),
    ...(webSearch && { web_search: decimalText(webSearch) }),
    ...(Object.keys(otherTools).length > 0 && { tools: toolsJson(otherTools) }),
    ...byUnit(({ name }) => decimalText(units[name])),
    ...(Object.keys(image).length > 0 && { image: imagesJson(image) }),
  }
}

function toolsJson(tools: ToolPrices): Record<string, string> {
  return Object.fromEntries(Object.entries(tools).map(([kind, price]) => [kind, decimalText(price)]))
}

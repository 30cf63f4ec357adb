import { decimalText } from './decimal.ts'
import type { Price } from './price.ts'
import { imagesJson } from './ratios.ts'
import { tokenPriceTexts } from './token-kinds.ts'
import type { ToolPrices } from './tool-use.ts'
import type { JsonObject } from './records/field-types.ts'

/** A price as gateway.yaml would state it, without its tiers. */
export function priceTexts({ tokens, request, tools, characters, second, ...price }: Price): JsonObject {
  const { web_search: webSearch, ...otherTools } = tools
  return {
    ...tokenPriceTexts(tokens),
    request: decimalText(request),
    ...(webSearch && { web_search: decimalText(webSearch) }),
    ...(Object.keys(otherTools).length > 0 && { tools: toolsJson(otherTools) }),
    characters: decimalText(characters),
    second: decimalText(second),
    search_unit: decimalText(price.search_unit),
    ...(Object.keys(price.image).length > 0 && { image: imagesJson(price.image) }),
  }
}

function toolsJson(tools: ToolPrices): Record<string, string> {
  return Object.fromEntries(Object.entries(tools).map(([kind, price]) => [kind, decimalText(price)]))
}

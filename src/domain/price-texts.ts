import { decimalText } from './decimal.ts'
import type { Price, TokenPrices } from './price.ts'
import { imagesJson } from './ratios.ts'
import type { ToolPrices } from './tool-use.ts'
import type { JsonObject } from './stored-configuration.ts'

/** Prices of tokens as decimals, by their keys in gateway.yaml. */
export function tokenPriceTexts(tokens: TokenPrices): Record<string, string> {
  return {
    input: decimalText(tokens.input),
    output: decimalText(tokens.output),
    cache_read: decimalText(tokens.cacheRead),
    cache_write_5m: decimalText(tokens.cacheWrite5m),
    cache_write_1h: decimalText(tokens.cacheWrite1h),
    audio_input: decimalText(tokens.audioInput),
    audio_output: decimalText(tokens.audioOutput),
    image_input: decimalText(tokens.imageInput),
    image_output: decimalText(tokens.imageOutput),
    audio_cache_read: decimalText(tokens.audioCacheRead),
    image_cache_read: decimalText(tokens.imageCacheRead),
  }
}

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
    search_unit: decimalText(price.searchUnit),
    ...(Object.keys(price.image).length > 0 && { image: imagesJson(price.image) }),
  }
}

function toolsJson(tools: ToolPrices): Record<string, string> {
  return Object.fromEntries(Object.entries(tools).map(([kind, price]) => [kind, decimalText(price)]))
}

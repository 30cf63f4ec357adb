import { THINKING_FORMS } from '@sluice/wire/model-capabilities'
import type { Price } from '../price.ts'
import { NO_LIMIT, type RateLimit } from '../rate-limit.ts'
import { retentionField } from './duration.ts'
import { declaredNameType, flagType, jsonType, listType, oneOfType } from './field-types.ts'
import { declareRecord, type Values } from './record.ts'

/** Settings of a model, as in gateway.yaml: `docs/configuration.md: Models`. */
export const MODEL_SETTINGS = declareRecord('', {
  /**
   * Name of the model's vendor, which model lists (`owned_by`) and the `vendor_routes` of tokens use;
   * undefined if unknown.
   */
  vendor: { type: declaredNameType('the name of a vendor'), default: undefined, declared: true },
  /** The model's price; undefined if it has none. */
  price: { type: jsonType<Price>(), default: undefined, declared: true },
  rate_limit: { type: jsonType<RateLimit>(), default: NO_LIMIT, declared: true },
  /**
   * Whether the model accepts `temperature`, `top_p` and `top_k`. If `sampling`, `thinking` or
   * `takes_thoughts` is undefined, the model's name decides.
   */
  sampling: { type: flagType, default: undefined, declared: true },
  thinking: {
    type: oneOfType(THINKING_FORMS, 'a form of thinking'),
    default: undefined,
    declared: true,
  },
  /** Whether earlier messages may contain `reasoning_content` in requests of the chat protocol. */
  takes_thoughts: { type: flagType, default: undefined, declared: true },
  cache_breakpoints: { type: flagType, default: undefined, declared: true },
  /** Models that are called instead, in this order, if no channel of this model answers. */
  fallback: {
    type: listType(declaredNameType('the name of a model'), 'a list of models'),
    default: [],
    declared: true,
    edit: 'admin',
    as: 'ModelFallback',
  },
  /** Models that are called instead, in this order, if a request is too long for this one. */
  context_fallback: {
    type: listType(declaredNameType('the name of a model'), 'a list of models'),
    default: [],
    declared: true,
    edit: 'admin',
    as: 'ModelContextFallback',
  },
  /** Models that are called instead, in this order, if this one refuses a request because of its content. */
  content_fallback: {
    type: listType(declaredNameType('the name of a model'), 'a list of models'),
    default: [],
    declared: true,
    edit: 'admin',
    as: 'ModelContentFallback',
  },
  /**
   * The model that is called instead once no channel serves this one any more. `docs/configuration.md:
   * Successor`.
   */
  successor: {
    type: declaredNameType('the name of a model'),
    default: undefined,
    declared: true,
    edit: 'admin',
    as: 'ModelSuccessor',
  },
  /** How a channel is chosen among those of equal priority. `docs/configuration.md: Balance`. */
  balance: {
    type: oneOfType(['weight', 'least_busy', 'latency'], 'a way to balance'),
    default: 'weight',
    declared: true,
    edit: 'admin',
    as: 'ModelBalance',
  },
  /**
   * How long the model's answers are cached, in milliseconds; 0 caches none. If undefined, `options.cache`
   * applies.
   */
  cache: { type: retentionField, default: undefined, declared: true, edit: 'admin', as: 'ModelCache' },
})

/**
 * Settings of a model. For models declared in gateway.yaml, the built-in vendor and price are not filled in.
 */
export type ModelSettings = Values<typeof MODEL_SETTINGS.fields>

/**
 * Reasons for which a call continues with certain models only: its request is too long for the model, or was
 * refused because of its content. `docs/configuration.md: Fallback`.
 */
export const FALLBACK_REASONS = ['context_fallback', 'content_fallback'] as const
export type FallbackReason = (typeof FALLBACK_REASONS)[number]

/** A model that clients may request. */
export type Model = ModelSettings & {
  readonly name: string
  /** The model whose price applies, because every channel maps this name to it. */
  readonly pricedAs?: string | undefined
  /** Context length in tokens; an assumed value if the price data does not state it. */
  readonly contextTokens: number
  /** Whether the price data state the context length. */
  readonly isContextKnown: boolean
  /**
   * Identifies the built-in price that applies now, if it depends on the date or the time of day. A call's
   * price version includes it.
   */
  readonly priceMoment?: string | undefined
}

/** Whether calls of a model may continue with another one because of what their request contains. */
export function hasFallbackReasons({ context_fallback, content_fallback }: ModelSettings): boolean {
  return context_fallback.length + content_fallback.length > 0
}

/** Whether another model may answer calls of this one. */
export function hasOtherModels(model: ModelSettings): boolean {
  return model.fallback.length > 0 || model.successor !== undefined || hasFallbackReasons(model)
}

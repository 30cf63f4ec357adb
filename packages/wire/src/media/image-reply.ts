import type { Usage } from '../usage.ts'
import { JsonOutline } from '../json/json-outline.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import { isError } from '../reply-facts.ts'
import { readMediaUsage } from './usage.ts'

const BEGUN = /"data"\s*:\s*\[\s*\{/
const IMAGE = /(?<!\\)"(?:b64_json|url)"\s*:\s*"/g

/** Facts of a whole response with images. */
export interface ImageFacts {
  /** Number of images; 0 if the response has no list of images. */
  readonly images: number
  readonly isError: boolean
  readonly usage: Usage | undefined
  readonly size: string | undefined
  readonly quality: string | undefined
}

/** Reads a response with images while it streams, in bounded memory. */
export class ImageReply {
  readonly #outline = new JsonOutline()
  #hasBegun = false

  push(bytes: Buffer): void {
    this.#outline.push(bytes)
    this.#hasBegun ||= BEGUN.test(this.#outline.text ?? '')
  }

  /** Whether the list of images has begun. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** Number of images that have begun; the last one may be incomplete. */
  get begun(): number {
    return this.#outline.text?.match(IMAGE)?.length ?? 0
  }

  /** The facts of a complete response. */
  get facts(): ImageFacts {
    const reply = parseRecord(this.#outline.text ?? '') ?? {}
    const data = Array.isArray(reply['data']) ? (reply['data'] as readonly unknown[]) : []
    return {
      images: data.filter(isImage).length,
      isError: isError(reply['error']),
      usage: readMediaUsage(reply['usage'], 'image'),
      size: textIn(reply['size']),
      quality: textIn(reply['quality']),
    }
  }
}

function isImage(value: unknown): boolean {
  const { b64_json: base64, url } = asRecord(value) ?? {}
  return [base64, url].some((one) => typeof one === 'string' && one !== '')
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

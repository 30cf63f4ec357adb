import { tokensOfEncryptedText } from './prompt-tokens.ts'

/** Assumed bytes per second of audio: raw samples (24 kHz, 16 bits), and compressed audio (64 kbit/s). */
const RAW_BYTES_PER_SECOND = 48_000
const CODED_BYTES_PER_SECOND = 8_000
/** Bytes per token of a text of which nothing is known. */
const BYTES_PER_TOKEN = 3
/** Number of base64 characters that are enough to contain the header of an image. */
const HEAD_LENGTH = 1_024
/**
 * Number of tokens of a generated image in the most expensive common format, and the number of pixels of this
 * format.
 */
const PICTURE_TOKENS = 6_240
const PICTURE_PIXELS = 1_024 * 1_536
/**
 * Maximum plausible width and height of a generated image in pixels. A larger size in the header of an image
 * is ignored.
 */
const MAX_SIDE = 8_192

export interface ReceivedImage {
  /** Width and height such as `1024x1024`; undefined if they cannot be read from its bytes. */
  readonly size: string | undefined
  /** Number of tokens to charge for the image, unless the model has a price per image. */
  readonly tokens: number
}

/** Counts what a response contains besides text: audio, images and hidden reasoning. */
export class ReceivedMedia {
  /** Duration of the audio in seconds, with fractions. */
  seconds = 0
  readonly pictures: ReceivedImage[] = []
  /** Estimated tokens of reasoning that was received only in encrypted form. */
  hiddenTokens = 0

  get isEmpty(): boolean {
    return this.seconds === 0 && this.pictures.length === 0 && this.hiddenTokens === 0
  }

  /**
   * A number that increases with each piece of audio and each image, to notice whether an event contained
   * any.
   */
  get progress(): number {
    return this.seconds + this.pictures.length
  }

  /** Adds a text of which nothing is known, by its bytes. */
  addUnknown(text: string): void {
    this.hiddenTokens += Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)
  }

  /** Adds audio, given its length in base64 characters. Without `type` it is raw samples at 24 kHz. */
  addSound(base64Length: number, type = 'audio/L16'): void {
    const bytes = (base64Length * 3) / 4
    const isRaw = /^audio\/(?:l16|pcm|raw)\b/i.test(type)
    const rate = Number(/rate=(\d{4,6})/i.exec(type)?.[1] ?? 0)
    const perSecond = rate > 0 ? rate * 2 : RAW_BYTES_PER_SECOND
    this.seconds += bytes / (isRaw ? perSecond : CODED_BYTES_PER_SECOND)
  }

  /**
   * Adds an image. `base64` is its data, or at least their beginning; empty if the image is given as a URL.
   */
  addPicture(base64: string, tokens?: number): void {
    const size = believedSize(Buffer.from(base64.slice(0, HEAD_LENGTH), 'base64'))
    this.pictures.push({
      size: size && `${size.width}x${size.height}`,
      tokens: tokens ?? (size ? tokensOf(size.width * size.height) : PICTURE_TOKENS),
    })
  }

  /**
   * Adds encrypted reasoning, given its length in base64 characters. `visibleBytes` is the number of bytes of
   * this reasoning that were also received as readable text.
   */
  addHidden(base64Length: number, visibleBytes: number): void {
    this.hiddenTokens += Math.max(0, tokensOfEncryptedText(base64Length) - Math.ceil(visibleBytes / 4))
  }
}

function tokensOf(pixels: number): number {
  return Math.max(1, Math.ceil((PICTURE_TOKENS * pixels) / PICTURE_PIXELS))
}

function believedSize(head: Buffer): Size | undefined {
  const size = sizeOf(head)
  const isBelieved = (side: number): boolean => side > 0 && side <= MAX_SIDE
  return size && isBelieved(size.width) && isBelieved(size.height) ? size : undefined
}

interface Size {
  readonly width: number
  readonly height: number
}

/** Reads the size of a PNG, WebP or JPEG image from its header; undefined for any other format. */
function sizeOf(head: Buffer): Size | undefined {
  if (head.length >= 24 && head.toString('latin1', 1, 4) === 'PNG')
    return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
  if (head.length >= 30 && head.toString('latin1', 8, 16) === 'WEBPVP8X')
    return { width: 1 + head.readUIntLE(24, 3), height: 1 + head.readUIntLE(27, 3) }
  if (head.length >= 4 && head.readUInt16BE(0) === 0xffd8) return jpegSize(head)
  return undefined
}

/** Finds the segment of a JPEG that contains its size, and reads the size. */
function jpegSize(head: Buffer): Size | undefined {
  for (let at = 2; at + 9 <= head.length; at += 2 + head.readUInt16BE(at + 2)) {
    const marker = head.readUInt16BE(at)
    const isFrame = marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker)
    if (isFrame) return { width: head.readUInt16BE(at + 7), height: head.readUInt16BE(at + 5) }
    if (marker < 0xff00) return undefined
  }
  return undefined
}

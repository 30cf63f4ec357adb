import { encryptedTokens } from './prompt-tokens.ts'

/** Bytes per second of audio: raw samples (24 kHz, 16 bits) and compressed audio (64 kbit/s). */
const RAW_BYTES_PER_SECOND = 48_000
const CODED_BYTES_PER_SECOND = 8_000
/** Number of base64 characters that are sure to contain the header of an image. */
const HEAD_LENGTH = 1_024
/** Tokens of an image in the most expensive common format, and the number of pixels of that image. */
const PICTURE_TOKENS = 6_240
const PICTURE_PIXELS = 1_024 * 1_536
/**
 * Maximum plausible side of a generated image, in pixels. The size in an image header comes from the upstream
 * and is not trusted beyond this.
 */
const MAX_SIDE = 8_192

/** An image that was received. */
export interface ArrivedPicture {
  /** For example `1024x1024`; undefined if the size cannot be read from its bytes. */
  readonly size: string | undefined
  /** Tokens to charge if images have no price of their own. */
  readonly tokens: number
}

/** Parts of a response that are not text: audio, images and hidden reasoning. */
export class ArrivedMedia {
  /** Seconds of audio, with fractions. */
  seconds = 0
  readonly pictures: ArrivedPicture[] = []
  /** Tokens of reasoning that arrived only in encrypted form. */
  hiddenTokens = 0

  get isEmpty(): boolean {
    return this.seconds === 0 && this.pictures.length === 0 && this.hiddenTokens === 0
  }

  /** A number that grows with each piece of audio and each image, so that progress can be noticed. */
  get progress(): number {
    return this.seconds + this.pictures.length
  }

  /** Adds audio whose base64 has this length. Without `type`, it is taken for raw samples at 24 kHz. */
  addSound(base64Length: number, type = 'audio/L16'): void {
    const bytes = (base64Length * 3) / 4
    const isRaw = /^audio\/(?:l16|pcm|raw)\b/i.test(type)
    const rate = Number(/rate=(\d{4,6})/i.exec(type)?.[1] ?? 0)
    const perSecond = rate > 0 ? rate * 2 : RAW_BYTES_PER_SECOND
    this.seconds += bytes / (isRaw ? perSecond : CODED_BYTES_PER_SECOND)
  }

  /**
   * Adds an image. `base64` is at least the beginning of its data, or '' if the image is given by its URL.
   */
  addPicture(base64: string, tokens?: number): void {
    const size = believedSize(Buffer.from(base64.slice(0, HEAD_LENGTH), 'base64'))
    this.pictures.push({
      size: size && `${size.width}x${size.height}`,
      tokens: tokens ?? (size ? tokensOf(size.width * size.height) : PICTURE_TOKENS),
    })
  }

  /**
   * Adds encrypted reasoning whose base64 has this length. `visibleBytes` of it were also received as text.
   */
  addHidden(base64Length: number, visibleBytes: number): void {
    this.hiddenTokens += Math.max(0, encryptedTokens(base64Length) - Math.ceil(visibleBytes / 4))
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

/** Walks through the segments of a JPEG to the one that contains its size. */
function jpegSize(head: Buffer): Size | undefined {
  for (let at = 2; at + 9 <= head.length; at += 2 + head.readUInt16BE(at + 2)) {
    const marker = head.readUInt16BE(at)
    const isFrame = marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker)
    if (isFrame) return { width: head.readUInt16BE(at + 7), height: head.readUInt16BE(at + 5) }
    if (marker < 0xff00) return undefined
  }
  return undefined
}

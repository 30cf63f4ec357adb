import { Transform, type TransformCallback } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'

/**
 * Maximum number of frames in one body. A frame may have only nine bytes, but its decoder costs about 50 µs.
 */
const MAX_DECODERS = 100

/**
 * Decodes a sequence of zstd frames (RFC 8878, 3: their contents are concatenated). Node's decoder stops
 * after the first frame if the next one is in the same write, but continues if it is in another write, so
 * that the result would depend on how the network splits a body.
 */
export class ZstdFrames extends Transform {
  #decoder = this.#newDecoder()
  /** Number of bytes passed to the current decoder. */
  #bytesGiven = 0
  #lastWrite: Buffer = Buffer.alloc(0)
  /** Callback of the current write or flush. */
  #callback: TransformCallback = () => {}
  #isLast = false
  #decoders = 1

  override _read(size: number): void {
    this.#decoder.resume()
    super._read(size) // oxlint-disable-line no-underscore-dangle -- the name is Node's
  }

  override _transform(bytes: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#callback = done
    this.#write(bytes)
  }

  override _flush(done: TransformCallback): void {
    this.#callback = done
    this.#isLast = true
    this.#decoder.end()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#decoder.destroy()
    done(error)
  }

  #write(bytes: Buffer): void {
    const decoder = this.#decoder
    this.#lastWrite = bytes
    this.#bytesGiven += bytes.length
    decoder.write(bytes, (error) => {
      // The decoder's 'error' event reports errors; its 'end' event passes remaining bytes to the next
      // decoder.
      if (!error && decoder === this.#decoder && decoder.bytesWritten === this.#bytesGiven) this.#callback()
    })
  }

  #onDecoderEnd(left: number): void {
    if (this.#isLast) return this.#callback()
    if (++this.#decoders > MAX_DECODERS) return void this.destroy(new Error('too many frames'))
    this.#decoder = this.#newDecoder()
    this.#bytesGiven = 0
    this.#write(this.#lastWrite.subarray(this.#lastWrite.length - left))
  }

  #newDecoder(): ReturnType<typeof createZstdDecompress> {
    const decoder = createZstdDecompress()
    decoder.on('data', (bytes: Buffer) => {
      if (!this.push(bytes)) decoder.pause()
    })
    decoder.on('error', (error) => this.destroy(error))
    decoder.on('end', () => this.#onDecoderEnd(this.#bytesGiven - decoder.bytesWritten))
    return decoder
  }
}

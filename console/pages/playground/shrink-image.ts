/** The maximum width and height of an image that is sent, in pixels. */
const MAX_SIDE = 2048
/** The maximum size of an image, in bytes. */
export const MAX_IMAGE_BYTES = 5 * 1024 * 1024
const QUALITY = 0.85

/** Reads an image as a data URL, scaled down if a side is longer than models process. */
export async function shrinkImage(file: Blob): Promise<string> {
  const image = await createImageBitmap(file)
  const scale = Math.min(1, MAX_SIDE / Math.max(image.width, image.height))
  if (scale === 1) return dataUrl(file)
  const canvas = document.createElement('canvas')
  canvas.width = Math.round(image.width * scale)
  canvas.height = Math.round(image.height * scale)
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height)
  return canvas.toDataURL(file.type === 'image/png' ? 'image/png' : 'image/jpeg', QUALITY)
}

function dataUrl(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => resolve(reader.result as string))
    reader.addEventListener('error', () => reject(reader.error ?? new Error('unreadable')))
    reader.readAsDataURL(file)
  })
}

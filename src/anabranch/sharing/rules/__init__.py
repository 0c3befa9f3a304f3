"""From queries to property trees and forests: the inference rules of the sharing paper."""
